// Recognizes text that is not in the encoding UTF-8, and files that are not text.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Throws Error{data} with the command that converts the file if its first bytes are those of text in UTF-16 or UTF-32:
// they begin with a byte order mark, or have zeros between the characters; also if they are those of an image, an
// array, an archive or another usual file that is not text.
void refuse_other_than_text(const std::string& path, std::string_view first_bytes);

}  // namespace trainctl
