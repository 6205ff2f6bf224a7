// Replaces control characters by escapes.
#include "core/base/terminal_text.h"

#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(std::string_view text, std::string_view kept) {
  const std::string valid = valid_utf8(text);
  std::string result;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view character = rest.substr(0, utf8_length(rest));
    const char32_t value = utf8_value(character);
    const bool shown = kept.find(character) != std::string_view::npos || !is_control(value);
    result += shown ? std::string(character) : format("\\u{:04x}", static_cast<std::uint32_t>(value));
    rest.remove_prefix(character.size());
  }
  return result;
}

}  // namespace

std::string terminal_text(std::string_view text) { return escaped(text, "\n\t"); }

std::string terminal_word(std::string_view text) { return escaped(text, ""); }

}  // namespace trainctl
