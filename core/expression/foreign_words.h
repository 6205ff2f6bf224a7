// Words and signs of Python and C that expressions do not have, and what to write instead.
#pragma once

#include <string_view>

namespace trainctl {

// A word or a sign, and the advice in the error about it.
struct Foreign {
  std::string_view word;
  const char* advice;
};
inline constexpr Foreign foreign_words[] = {
    {"if", "use where(condition, a, b)"},
    {"else", "use where(condition, a, b)"},
    {"and", "use & between conditions in parentheses: (a > 0) & (b > 0)"},
    {"or", "use | between conditions in parentheses: (a > 0) | (b > 0)"},
    {"not", "use ~ before a condition in parentheses: ~(a > 0)"},
    {"is", "use == or !="},
    {"in", "use == for each value, with | between the conditions"},
    {"lambda", "write the value itself"},
    {"for", "functions and operators compute with all elements of a tensor at once"},
    {"return", "write the value itself"}};
inline constexpr Foreign foreign_signs[] = {{"&&", "use & between conditions in parentheses: (a > 0) & (b > 0)"},
                                            {"||", "use | between conditions in parentheses: (a > 0) | (b > 0)"},
                                            {"!", "use ~ before a condition in parentheses: ~(a > 0)"},
                                            {"?", "use where(condition, a, b)"},
                                            {"=", "an expression is one value, without assignments; == compares"}};

// The advice on a word; null if an expression may have the word as a name.
inline const char* advice_on(std::string_view word) {
  for (const Foreign& of : foreign_words) {
    if (of.word == word) return of.advice;
  }
  return nullptr;
}

}  // namespace trainctl
