// The merges of a byte-pair encoding, and the algorithm that applies them to the symbols of a piece.
#pragma once

#include <cstdint>
#include <vector>

#include "io/text/tokenizer.h"

namespace trainctl {

class Vocabulary;

// What two adjacent symbols become, and in which order merges apply: lower ranks first.
struct Merge {
  std::uint32_t rank = 0;
  TokenId id = 0;
};

class Merges {
 public:
  // Adds a merge; a later merge of the same pair replaces an earlier one.
  void add(TokenId left, TokenId right, Merge merge);
  // The merge of two symbols; null if there is none.
  const Merge* find(TokenId left, TokenId right) const;
  std::size_t count() const { return count_; }

 private:
  struct Entry {
    std::uint64_t pair = empty;
    Merge merge;
  };
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Entry> entries_;  // open addressing; the size is a power of two
  std::size_t count_ = 0;
};

// The merges of a vocabulary of ranks: any two tokens merge if their joined bytes are a token, whose id is the rank.
Merges merges_of_ranks(const Vocabulary& ranks);

// The memory that applying merges to a piece needs; it is kept for the next piece.
struct MergeScratch {
  struct Symbol {
    std::uint32_t rank = 0;  // of the merge with the next symbol
    TokenId id = 0;
    TokenId merged = 0;  // what the two become
    std::uint32_t previous = 0, next = 0;
  };
  struct Candidate {
    std::uint32_t rank = 0, position = 0;
    TokenId merged = 0;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<TokenId> ids;  // the symbols of the piece, which apply_merges() replaces
};

// Replaces scratch.ids by the symbols that are left after all merges: always the merge of the lowest rank, and of equal
// ones the leftmost. The time is in proportion to n log n for n symbols.
void apply_merges(const Merges& merges, MergeScratch& scratch);

}  // namespace trainctl
