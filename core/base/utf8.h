// Validates text from outside as UTF-8 before the program shows, writes or sends it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// The number of bytes of the first character of a text, which must not be empty; 0 if the text begins with no valid
// character.
std::size_t utf8_length(std::string_view text);

// The code point of a character; `character` must be exactly the bytes of one valid character.
char32_t utf8_value(std::string_view character);

// The offset of the first byte that is not valid UTF-8 (RFC 3629); empty if the whole text is valid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Replaces each byte that is not valid UTF-8 (file names may contain such bytes) by an escape such as `\xe9`.
std::string valid_utf8(std::string_view text);

}  // namespace trainctl
