// Expands the ranges of categories into a table with one byte for each code point.
#include "io/text/unicode/category.h"

#include <algorithm>

namespace trainctl {
namespace {

std::vector<std::uint8_t> expanded_categories() {
  std::vector<std::uint8_t> table(code_points);
  for (std::size_t i = 0; i < category_range_count; ++i) {
    const std::uint32_t begin = category_ranges[i] / 128;
    const std::uint32_t end = i + 1 < category_range_count ? category_ranges[i + 1] / 128 : code_points;
    std::fill(table.begin() + begin, table.begin() + end, static_cast<std::uint8_t>(category_ranges[i] % 128));
  }
  return table;
}

}  // namespace

const std::vector<std::uint8_t>& code_point_table() {
  static const std::vector<std::uint8_t> table = expanded_categories();
  return table;
}

Category category_in_unicode8(char32_t code) {
  if (age_of(code) != Age::unicode8) return Category::unassigned;
  switch (code) {  // the code points whose category has changed since
    case 0x166d:
    case 0x111c9:
      return Category::other_punctuation;
    case 0x1734:
    case 0x1171e:
      return category_of(code) == Category::nonspacing_mark ? Category::spacing_mark : Category::nonspacing_mark;
    case 0x1885:
    case 0x1886:
      return Category::other_letter;
    case 0xa9bd:
      return Category::spacing_mark;
    default:
      return category_of(code);
  }
}

bool is_white_space(char32_t code) {
  return (code >= 9 && code <= 13) || code == 0x85 || category_of(code) >= Category::space_separator;
}

}  // namespace trainctl
