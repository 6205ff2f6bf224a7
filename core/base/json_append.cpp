// Quotes strings of ASCII itself, and leaves others to the JSON library, which replaces bytes that are not UTF-8.
#include "core/base/json_append.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

bool is_escaped(char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }

void append_escaped(std::string& text, char c) {
  static constexpr std::string_view characters = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
  const std::size_t found = characters.find(c);
  if (found == std::string_view::npos) {
    text += format("\\u{:04x}", static_cast<int>(c));
  } else {
    text += '\\';
    text += letters[found];
  }
}

}  // namespace

void append_json_string(std::string& text, std::string_view value) {
  if (!std::all_of(value.begin(), value.end(), is_ascii)) {
    text += json_text(Json(value));
    return;
  }
  text += '"';
  for (auto next = value.begin(); next != value.end();) {
    const auto end = std::find_if(next, value.end(), is_escaped);
    text.append(next, end);
    next = end;
    if (next != value.end()) append_escaped(text, *next++);
  }
  text += '"';
}

void append_json_list(std::string& text, std::span<const std::int64_t> values) {
  text += '[';
  for (const std::int64_t value : values) {
    if (text.back() != '[') text += ", ";
    text += std::to_string(value);
  }
  text += ']';
}

}  // namespace trainctl
