// Words and signs of Python and C that expressions do not have, and what to write instead.
#pragma once

#include <string_view>

namespace trainctl {

// A word or a sign, and the advice in the error about it.
struct Foreign {
  std::string_view word;
  const char* advice;
  bool may_be_name = false;  // refused only where an operator is expected
};
inline constexpr Foreign foreign_words[] = {
    {"if", "use where(condition, a, b)"},
    {"else", "use where(condition, a, b)", true},
    {"and", "use & between conditions in parentheses: (a > 0) & (b > 0)"},
    {"or", "use | between conditions in parentheses: (a > 0) | (b > 0)"},
    {"not", "use ~ before a condition in parentheses: ~(a > 0)"},
    {"is", "use == or !=", true},
    {"in", "use == for each value, with | between the conditions", true},
    {"lambda", "write the value itself"},
    {"for", "functions and operators compute with all elements of a tensor at once"},
    {"return", "write the value itself", true}};
inline constexpr Foreign foreign_signs[] = {{"&&", "use & between conditions in parentheses: (a > 0) & (b > 0)"},
                                            {"||", "use | between conditions in parentheses: (a > 0) | (b > 0)"},
                                            {"!", "use ~ before a condition in parentheses: ~(a > 0)"},
                                            {"?", "use where(condition, a, b)"},
                                            {"=", "an expression is one value, without assignments; == compares"}};

// What is known about a word; null if other languages have no such word.
inline const Foreign* find_foreign_word(std::string_view word) {
  for (const Foreign& of : foreign_words) {
    if (of.word == word) return &of;
  }
  return nullptr;
}

}  // namespace trainctl
