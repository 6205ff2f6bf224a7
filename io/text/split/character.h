// The classes of characters that the patterns of vocabularies distinguish, and the reader of characters for scanners.
#pragma once

#include <cstdint>

#include "io/text/unicode/category.h"

namespace trainctl {

// Bits, so that a scanner tests for several classes at once.
enum CharacterClass : std::uint8_t {
  upper_letter = 1,     // Lu, Lt
  lower_letter = 2,     // Ll
  caseless_letter = 4,  // Lm, Lo
  mark_character = 8,   // M
  number_character = 16,
  line_end = 32,           // \r and \n
  blank = 64,              // other white space
  symbol_character = 128,  // all others
  letter_character = upper_letter | lower_letter | caseless_letter,
  white_space = line_end | blank,
};

// A table of the classes of all code points, which is built once.
class CharacterClasses {
 public:
  CharacterClasses();

  // Reads the character at `at`, which must be before `end`. Sets its class, and returns the end of its bytes. A byte
  // that does not belong to a character is a symbol of its own.
  const char* read(const char* at, const char* end, std::uint8_t& kind) const {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x80) {
      kind = table_[byte];
      return at + 1;
    }
    return read_long(at, end, kind);
  }

  std::uint8_t of_byte(unsigned char ascii) const { return table_[ascii]; }

 private:
  const char* read_long(const char* at, const char* end, std::uint8_t& kind) const;

  std::vector<std::uint8_t> table_;
};

// The one table of the process.
const CharacterClasses& character_classes();

}  // namespace trainctl
