// The tokens of a vocabulary: their bytes by id, and their ids by bytes in a flat hash table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/text/tokenizer.h"

namespace trainctl {

// The id that means no token.
inline constexpr TokenId no_token = -1;
// The largest id that is accepted. Tables have an entry for each id, so that a damaged file could claim any memory.
inline constexpr TokenId largest_token = 16'777'215;

class Vocabulary {
 public:
  Vocabulary() = default;

  // Adds a token. Ids may come in any order. Returns false if the bytes or the id are already taken.
  bool add(std::string_view bytes, TokenId id);

  // The id of the token with these bytes; no_token if there is none.
  TokenId find(std::string_view bytes) const;
  bool has(TokenId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < entries_.size() && entries_[static_cast<std::size_t>(id)].taken;
  }
  // The bytes of a token that the vocabulary has.
  std::string_view bytes(TokenId id) const {
    const Entry& entry = entries_[static_cast<std::size_t>(id)];
    return std::string_view(text_).substr(entry.begin, entry.size);
  }
  // The largest id plus one.
  TokenId size() const { return static_cast<TokenId>(entries_.size()); }
  // The number of tokens.
  std::size_t count() const { return count_; }
  // The bytes of the longest token.
  std::size_t longest() const { return longest_; }

 private:
  struct Entry {
    std::uint32_t begin = 0, size = 0;
    bool taken = false;
  };

  std::size_t slot_of(std::string_view bytes) const;
  void grow();

  std::string text_;            // the bytes of all tokens
  std::vector<Entry> entries_;  // by id
  std::vector<TokenId> slots_;  // open addressing; the size is a power of two
  std::size_t count_ = 0, longest_ = 0;
};

}  // namespace trainctl
