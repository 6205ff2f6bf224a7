// Decodes base64 by groups of four characters.
#include "io/text/files/base64.h"

#include <cstdint>

namespace trainctl {
namespace {

// The value of a character of base64; -1 if it is not one.
int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

bool append_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0) return false;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t group = 0;
    int padding = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const char c = text[at + i];
      const bool may_pad = at + 4 == text.size() && i >= 2;
      const int value = c == '=' && may_pad ? 0 : base64_value(c);
      if (value < 0 || (padding > 0 && c != '=')) return false;
      padding += c == '=';
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    for (int i = 0; i < 3 - padding; ++i) bytes += static_cast<char>(group >> (16 - 8 * i));
  }
  return true;
}

}  // namespace trainctl
