// The characters that stand for bytes in byte-level vocabularies.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// The bytes for which the characters of byte-level vocabularies stand: U+0120 for a space. False if a character stands
// for no byte.
bool bytes_of_characters(std::string_view characters, std::string& bytes);
// The characters that stand for bytes.
std::string characters_of_bytes(std::string_view bytes);

}  // namespace trainctl
