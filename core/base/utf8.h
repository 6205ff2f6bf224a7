// Checks that text from outside is UTF-8 before the program shows it, writes it or sends it on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// The bytes of the character that a text, which is not empty, begins with; 0 where it begins with no valid character.
std::size_t utf8_length(std::string_view text);

// The number of the character whose bytes these are, all of them and valid.
char32_t utf8_value(std::string_view character);

// The offset of the first byte that begins no character of UTF-8 (RFC 3629); empty where the whole text is valid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// `text` with each byte that is not part of valid UTF-8, which names of files may hold, as an escape such as `\xe9`.
std::string valid_utf8(std::string_view text);

}  // namespace trainctl
