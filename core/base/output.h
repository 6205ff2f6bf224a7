// Standard output: what a command answers, and the descriptors that every process is to have.
#pragma once

#include <string_view>

namespace trainctl {

// The first thing in main: standard input, output and error that the caller has closed are opened on /dev/null, so that
// no file of ours takes their numbers; a reader that goes away (SIGPIPE) and a file that may grow no further (SIGXFSZ)
// are errors of the call that writes.
void prepare_descriptors();

// Writes all of it, waiting for a slow reader. Returns errno, or 0.
int write_all(int descriptor, std::string_view text);

// A command's answer. Where its reader has gone nothing is written, and that is no error. Throws Error{resource} where
// standard output cannot be written.
void write_output(std::string_view text);

}  // namespace trainctl
