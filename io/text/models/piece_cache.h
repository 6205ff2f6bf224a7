// Keeps the ids of recent pieces, which are mostly words, in tables of a fixed size: a word is encoded once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "io/text/models/model.h"

namespace trainctl {

class Splitter;

// The cache of one thread's encoder. The model must outlive it.
class PieceCache {
 public:
  explicit PieceCache(const Model& model);

  // Appends the ids of all pieces into which the splitter cuts a text.
  void encode(std::string_view text, const Splitter& splitter, std::vector<TokenId>& ids);
  // Appends the ids of one piece.
  void encode(std::string_view piece, std::vector<TokenId>& ids);

 private:
  // Up to 15 bytes and their number, with at most three ids: most words of most languages.
  struct ShortEntry {
    std::uint64_t low = 0, high = 0;  // the bytes; the highest byte of `high` is their number, 0 in a free entry
    TokenId ids[3] = {};
    std::uint32_t count = 0;
  };
  struct LongEntry {
    std::uint8_t size = 0, count = 0;
    char bytes[62] = {};
    TokenId ids[16] = {};
  };
  static_assert(sizeof(ShortEntry) == 32 && sizeof(LongEntry) == 128);

  void encode_long(std::string_view piece, std::vector<TokenId>& ids);

  const Model& model_;
  ModelScratch scratch_;
  std::vector<ShortEntry> short_;  // in pairs: an entry is in either place of its pair
  std::vector<LongEntry> long_;
};

}  // namespace trainctl
