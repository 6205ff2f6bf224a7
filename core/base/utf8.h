// Checks that text from outside is UTF-8 before the program shows it, writes it or sends it on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// The offset of the first byte that begins no character of UTF-8 (RFC 3629); empty where the whole text is valid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// `text` with each byte that is not part of valid UTF-8, which names of files may hold, replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace trainctl
