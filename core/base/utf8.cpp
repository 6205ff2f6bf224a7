// Validates UTF-8 by the rules of RFC 3629: no overlong encodings, no surrogates, no characters above U+10FFFF.
#include "core/base/utf8.h"

#include "core/base/format.h"

namespace trainctl {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || length > text.size()) return 0;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

char32_t utf8_value(std::string_view character) {
  const std::size_t length = character.size();
  char32_t value = static_cast<unsigned char>(character[0]);
  if (length > 1) value &= 0xffU >> (length + 1);
  for (std::size_t i = 1; i < length; ++i) value = value << 6 | (static_cast<unsigned char>(character[i]) & 0x3fU);
  return value;
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return {};
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (const auto invalid = find_invalid_utf8(text)) {
    valid.append(text.substr(0, *invalid)).append(format("\\x{:02x}", static_cast<unsigned char>(text[*invalid])));
    text.remove_prefix(*invalid + 1);
  }
  return valid.append(text);
}

}  // namespace trainctl
