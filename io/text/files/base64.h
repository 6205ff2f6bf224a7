// Decodes base64 with padding (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Appends the bytes of a base64 text; false if the text is not base64.
bool append_base64(std::string_view text, std::string& bytes);

}  // namespace trainctl
