// The general categories of Unicode 16, the ages of code points, and the white space of its property White_Space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace trainctl {

// The general categories, in an order in which letters, marks, numbers, punctuation and symbols are ranges.
enum class Category : std::uint8_t {
  unassigned,           // Cn
  control,              // Cc
  format,               // Cf
  surrogate,            // Cs
  private_use,          // Co
  upper_case,           // Lu
  title_case,           // Lt
  lower_case,           // Ll
  modifier_letter,      // Lm
  other_letter,         // Lo
  nonspacing_mark,      // Mn
  spacing_mark,         // Mc
  enclosing_mark,       // Me
  digit,                // Nd
  letter_number,        // Nl
  other_number,         // No
  connector,            // Pc
  dash,                 // Pd
  open,                 // Ps
  close,                // Pe
  initial_quote,        // Pi
  final_quote,          // Pf
  other_punctuation,    // Po
  math_symbol,          // Sm
  currency,             // Sc
  modifier_symbol,      // Sk
  other_symbol,         // So
  space_separator,      // Zs
  line_separator,       // Zl
  paragraph_separator,  // Zp
};

inline constexpr char32_t code_points = 0x110000;  // the number of code points

// The version of Unicode that first had a code point.
enum class Age : std::uint8_t { unicode8, unicode9, later };

// The category and the age of every code point, one byte each, which is built once.
const std::vector<std::uint8_t>& code_point_table();

// The category and the age of a code point; numbers that are no code points are unassigned.
inline Category category_of(char32_t code) {
  return code < code_points ? static_cast<Category>(code_point_table()[code] & 31) : Category::unassigned;
}
inline Age age_of(char32_t code) {
  return code < code_points ? static_cast<Age>(code_point_table()[code] >> 5) : Age::later;
}
// The category that a code point had in Unicode 8, with which BERT's normalizer of `tokenizers` works.
Category category_in_unicode8(char32_t code);
inline bool is_letter(Category c) { return c >= Category::upper_case && c <= Category::other_letter; }
inline bool is_mark(Category c) { return c >= Category::nonspacing_mark && c <= Category::enclosing_mark; }
inline bool is_number(Category c) { return c >= Category::digit && c <= Category::other_number; }
inline bool is_punctuation(Category c) { return c >= Category::connector && c <= Category::other_punctuation; }
inline bool is_symbol(Category c) { return c >= Category::math_symbol && c <= Category::other_symbol; }

// Whether a code point has the property White_Space: the separators, tab to carriage return, and U+0085.
bool is_white_space(char32_t code);

// The first code points of runs of one category and age, times 128, plus the age times 32, plus the category. Used by
// code_point_table() alone.
extern const std::uint32_t category_ranges[];
extern const std::size_t category_range_count;

}  // namespace trainctl
