// Converts commands to lines of a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// Quotes a word for a POSIX shell: unchanged if it needs no quotes, otherwise in single quotes.
std::string shell_word(std::string_view word);

// Quotes the words and joins them with spaces.
std::string shell_line(const std::vector<std::string>& words);

// Replaces line ends and other control characters by spaces, so that the text fits in a comment.
std::string one_line(std::string text);

}  // namespace trainctl
