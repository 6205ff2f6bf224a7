// Appends strings and lists of JSON to a text, for texts that are too long to be built as values first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trainctl {

// Appends a string in quotes, as json_text() writes it. ASCII is appended without a copy.
void append_json_string(std::string& text, std::string_view value);

// Appends a list such as [64, 32].
void append_json_list(std::string& text, std::span<const std::int64_t> values);

}  // namespace trainctl
