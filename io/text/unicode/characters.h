// Reads the characters of a text, and tests properties of a character that patterns use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/text/unicode/category.h"

namespace trainctl {

// The character that Unicode uses for one that cannot be read.
inline constexpr char32_t replacement_character = 0xfffd;

struct Character {
  char32_t code = 0;
  std::size_t length = 0;  // in bytes
};

// The first character of a text that is not empty. A byte that is not UTF-8 counts as U+FFFD.
Character first_character(std::string_view text);

// Appends a character as UTF-8.
void append_character(char32_t code, std::string& text);

// The number of characters of a text; bytes that are not UTF-8 count one each.
std::size_t character_count(std::string_view text);

// \w of a regular expression: letters, marks, decimal digits, connectors, and other characters with Unicode's property
// Alphabetic, such as U+24D0.
bool is_word_character(char32_t code);

// A character of CJK ideographs, which BERT's tokenizers separate. As there, U+2B820 to U+2B91F are missing.
bool is_cjk_ideograph(char32_t code);

// The characters of ASCII that are neither letters, digits, white space nor controls.
inline bool is_ascii_punctuation(char32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
         (code >= '{' && code <= '~');
}

// What BERT's tokenizers call punctuation: ASCII's, and the categories P of Unicode 8.
inline bool is_bert_punctuation(char32_t code) {
  return is_ascii_punctuation(code) || is_punctuation(category_in_unicode8(code));
}

}  // namespace trainctl
