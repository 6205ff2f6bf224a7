// Whether bytes are UTF-8: what texts from outside must be before they are shown, written or sent on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// The offset of the first byte that begins no character of UTF-8 (RFC 3629); nothing where all is well.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// `text` with what is not UTF-8 (names of files may be anything) replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace trainctl
