// A command as a line of a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The word as a POSIX shell reads it: as it is where that is safe, else in single quotes.
std::string shell_word(std::string_view word);

// The words with spaces between them.
std::string shell_line(const std::vector<std::string>& words);

// The text as a comment takes it: with spaces in the place of line ends and other control characters.
std::string one_line(std::string text);

}  // namespace trainctl
