// Writing a command's answer to standard output, and the preparation of the standard descriptors.
#pragma once

#include <string_view>

namespace trainctl {

// Called first in main. Opens standard input, output and error on /dev/null where the caller has closed them, so that
// no file of the program takes their numbers. Ignores SIGPIPE and SIGXFSZ, so that a closed pipe and a file at its size
// limit are errors of the call that writes.
void prepare_descriptors();

// Writes the whole text, waiting for a slow reader. Returns 0, or errno of the write that failed.
int write_all(int descriptor, std::string_view text);

// Writes a command's answer to standard output, as terminal_text() shows it: what a file, a name or a value holds does
// not steer a terminal. A reader that has closed the pipe is no error: the rest of the text is dropped, and the result
// is false. Throws Error{resource} if the write fails otherwise.
bool write_output(std::string_view text);

// The same for bytes that are no text, and for text that steers the terminal on purpose.
bool write_output_bytes(std::string_view bytes);

}  // namespace trainctl
