// Properties of characters, by category.
#include "io/text/unicode/characters.h"

#include "core/base/utf8.h"

namespace trainctl {

Character first_character(std::string_view text) {
  const std::size_t length = utf8_length(text);
  if (length == 0) return {replacement_character, 1};
  return {utf8_value(text.substr(0, length)), length};
}

void append_character(char32_t code, std::string& text) {
  const auto add = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += first_character(text.substr(at)).length) ++count;
  return count;
}

bool is_word_character(char32_t code) {
  const Category category = category_of(code);
  if (is_letter(category) || is_mark(category) || category == Category::digit || category == Category::connector)
    return true;
  if (category == Category::letter_number) return true;
  // Alphabetic symbols, and the joiners.
  return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
         (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189) || code == 0x200c ||
         code == 0x200d;
}

bool is_cjk_ideograph(char32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
         (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
         (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

}  // namespace trainctl
