// The normalization forms and the lower case of Unicode, by utf8proc.
#pragma once

#include <string>
#include <string_view>

#include "io/text/pipeline/normalizer.h"

namespace trainctl {

// Appends a text in a normalization form of Unicode 9, which is the version of `tokenizers`, so that ids are equal.
// Bytes that are not UTF-8 stay as they are.
void append_normal_form(std::string_view text, NormalForm form, std::string& out);

// Appends the lower case of a character, without regard to its neighbours.
void append_lower_case(char32_t code, std::string& out);

}  // namespace trainctl
