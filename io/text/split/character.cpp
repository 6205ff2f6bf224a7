// Builds the table of classes from the categories of Unicode, and reads characters of several bytes.
#include "io/text/split/character.h"

namespace trainctl {
namespace {

std::uint8_t class_of(char32_t code) {
  const Category category = category_of(code);
  if (code == '\r' || code == '\n') return line_end;
  if (is_white_space(code)) return blank;
  if (category == Category::upper_case || category == Category::title_case) return upper_letter;
  if (category == Category::lower_case) return lower_letter;
  if (is_letter(category)) return caseless_letter;
  if (is_mark(category)) return mark_character;
  return is_number(category) ? number_character : symbol_character;
}

}  // namespace

CharacterClasses::CharacterClasses() : table_(code_points) {
  for (char32_t code = 0; code < code_points; ++code) table_[code] = class_of(code);
}

const CharacterClasses& character_classes() {
  static const CharacterClasses classes;
  return classes;
}

const char* CharacterClasses::read_long(const char* at, const char* end, std::uint8_t& kind) const {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const auto follows = [&](int i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned char first = byte(0);
  const std::ptrdiff_t left = end - at;
  if (first >= 0xc2 && first < 0xe0 && left >= 2 && follows(1)) {
    kind = table_[(first & 0x1fU) << 6 | (byte(1) & 0x3fU)];
    return at + 2;
  }
  if (first >= 0xe0 && first < 0xf0 && left >= 3 && follows(1) && follows(2)) {
    const std::uint32_t code = (first & 0x0fU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
    if (code >= 0x800 && (code < 0xd800 || code > 0xdfff)) {
      kind = table_[code];
      return at + 3;
    }
  }
  if (first >= 0xf0 && first < 0xf5 && left >= 4 && follows(1) && follows(2) && follows(3)) {
    const std::uint32_t code =
        (first & 0x07U) << 18 | (byte(1) & 0x3fU) << 12 | (byte(2) & 0x3fU) << 6 | (byte(3) & 0x3fU);
    if (code >= 0x10000 && code < code_points) {
      kind = table_[code];
      return at + 4;
    }
  }
  kind = symbol_character;
  return at + 1;
}

}  // namespace trainctl
