// The rules of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
#include "core/base/utf8.h"

namespace trainctl {
namespace {

// Bytes of the character that begins at the offset `at`; 0 where no valid character begins there.
std::size_t length_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_at(text, at);
    if (length == 0) return at;
    at += length;
  }
  return {};
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (const auto invalid = find_invalid_utf8(text)) {
    valid.append(text.substr(0, *invalid)).append("\xef\xbf\xbd");
    text.remove_prefix(*invalid + 1);
  }
  return valid.append(text);
}

}  // namespace trainctl
