// The characters that stand for bytes in byte-level vocabularies: a printable byte is the character of its code, the
// others are U+0100 and the following.
#include "io/text/models/byte_characters.h"

#include <array>

#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

constexpr char32_t first_substitute = 0x100;

struct ByteCharacters {
  std::array<char32_t, 256> of_byte = {};
  std::array<int, 2 * first_substitute> byte_of = {};  // -1: none

  ByteCharacters() {
    byte_of.fill(-1);
    char32_t next = first_substitute;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
      of_byte[static_cast<std::size_t>(byte)] = code;
      byte_of[code] = byte;
    }
  }
};

const ByteCharacters& byte_characters() {
  static const ByteCharacters table;
  return table;
}

}  // namespace

bool bytes_of_characters(std::string_view characters, std::string& bytes) {
  bytes.clear();
  const auto& byte_of = byte_characters().byte_of;
  for (std::size_t at = 0; at < characters.size();) {
    const Character character = first_character(characters.substr(at));
    if (character.code >= byte_of.size() || byte_of[character.code] < 0) return false;
    bytes += static_cast<char>(byte_of[character.code]);
    at += character.length;
  }
  return true;
}

std::string characters_of_bytes(std::string_view bytes) {
  std::string characters;
  for (const char byte : bytes) {
    append_character(byte_characters().of_byte[static_cast<unsigned char>(byte)], characters);
  }
  return characters;
}

}  // namespace trainctl
