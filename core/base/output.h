// Prepares the standard file descriptors, and writes a command's output to standard output.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Must be called first in main. Opens /dev/null as standard input, output and error if the caller has closed them, so
// that no file of the program gets their numbers. Ignores SIGPIPE and SIGXFSZ, so that writing to a closed pipe or
// beyond the file size limit fails with an error instead of a signal.
void prepare_descriptors();

// Writes the whole text; waits if the reader is slow. Returns 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view text);

// Writes what the descriptor accepts without waiting, and removes it from the text. Waits only for a file system.
// Returns 0, or the errno of the write that failed.
int write_ready(int descriptor, std::string& text);

// Writes a command's output to standard output, with control characters escaped by terminal_text(). If the reader has
// closed the pipe, drops the rest of the text and returns false. Throws Error{resource} if the write fails for another
// reason.
bool write_output(std::string_view text);

// As write_output(), without escapes: for bytes that are not text, and for text with intended terminal control
// sequences.
bool write_output_bytes(std::string_view bytes);

}  // namespace trainctl
