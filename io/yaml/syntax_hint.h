// Explains the usual mistakes that lead to syntax errors of YAML.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Returns a hint such as "; line 12 has no ': ' between a key and its value" if the text has one of the usual mistakes
// at or before the line where the parser stopped, which counts from 0; "" otherwise. `problem` is the parser's message.
std::string syntax_hint(const std::string& text, int line, std::string_view problem);

}  // namespace trainctl
