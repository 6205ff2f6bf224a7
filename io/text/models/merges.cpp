// Applies merges: by a scan for the lowest rank in short pieces, and by a heap of candidates in long ones.
#include "io/text/models/merges.h"

#include <algorithm>

#include "io/text/models/vocabulary.h"

namespace trainctl {
namespace {

constexpr std::uint32_t no_rank = UINT32_MAX;
constexpr std::uint32_t no_symbol = UINT32_MAX;
constexpr std::size_t short_piece = 96;  // symbols up to which a scan is faster than a heap

std::uint64_t pair_of(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

using Symbol = MergeScratch::Symbol;

void set_merge(const Merges& merges, Symbol& symbol, TokenId next) {
  const Merge* merge = merges.find(symbol.id, next);
  symbol.rank = merge == nullptr ? no_rank : merge->rank;
  symbol.merged = merge == nullptr ? 0 : merge->id;
}

void merge_short(const Merges& merges, MergeScratch& scratch) {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::size_t count = scratch.ids.size();
  symbols.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    symbols[i].id = scratch.ids[i];
    symbols[i].rank = no_rank;
    if (i + 1 < count) set_merge(merges, symbols[i], scratch.ids[i + 1]);
  }
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (symbols[best].rank == no_rank) break;
    symbols[best].id = symbols[best].merged;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              symbols.begin() + static_cast<std::ptrdiff_t>(count),
              symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --count;
    symbols[best].rank = no_rank;
    if (best + 1 < count) set_merge(merges, symbols[best], symbols[best + 1].id);
    if (best > 0) set_merge(merges, symbols[best - 1], symbols[best].id);
  }
  scratch.ids.resize(count);
  for (std::size_t i = 0; i < count; ++i) scratch.ids[i] = symbols[i].id;
}

// The order of a heap whose top has the lowest rank, and the leftmost position among equal ranks.
bool later(const MergeScratch::Candidate& a, const MergeScratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

void merge_long(const Merges& merges, MergeScratch& scratch) {
  std::vector<Symbol>& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto count = static_cast<std::uint32_t>(scratch.ids.size());
  symbols.resize(count);
  heap.clear();
  const auto offer = [&](std::uint32_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = no_rank;
    if (symbol.next == no_symbol) return;
    set_merge(merges, symbol, symbols[symbol.next].id);
    if (symbol.rank != no_rank) heap.push_back({symbol.rank, at, symbol.merged});
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i] = {no_rank, scratch.ids[i], 0, i == 0 ? no_symbol : i - 1, i + 1 == count ? no_symbol : i + 1};
  }
  for (std::uint32_t i = 0; i < count; ++i) offer(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const MergeScratch::Candidate best = heap.back();
    heap.pop_back();
    Symbol& symbol = symbols[best.position];
    // The symbol may have been merged since: then it is gone (id -1), or its merge is another one.
    if (symbol.id == no_token || symbol.rank != best.rank || symbol.merged != best.merged) continue;
    Symbol& right = symbols[symbol.next];
    symbol.id = best.merged;
    symbol.next = right.next;
    right.id = no_token;
    if (symbol.next != no_symbol) symbols[symbol.next].previous = best.position;
    for (const std::uint32_t at : {best.position, symbol.previous}) {
      const std::size_t before = heap.size();
      if (at != no_symbol) offer(at);
      if (heap.size() != before) std::push_heap(heap.begin(), heap.end(), later);
    }
  }
  scratch.ids.clear();
  for (std::uint32_t i = 0; i != no_symbol; i = symbols[i].next) scratch.ids.push_back(symbols[i].id);
}

}  // namespace

std::size_t Merges::slot_of(std::uint64_t pair) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t slot = (pair * 0x9E3779B97F4A7C15ULL >> 29) & mask;
  while (entries_[slot].pair != pair && entries_[slot].pair != empty) slot = (slot + 1) & mask;
  return slot;
}

void Merges::add(TokenId left, TokenId right, Merge merge) {
  if (2 * (count_ + 1) > entries_.size()) {
    std::vector<Entry> old(std::max<std::size_t>(1024, 2 * entries_.size()));
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.pair != empty) entries_[slot_of(entry.pair)] = entry;
    }
  }
  Entry& entry = entries_[slot_of(pair_of(left, right))];
  if (entry.pair == empty) ++count_;
  entry = {pair_of(left, right), merge};
}

const Merge* Merges::find(TokenId left, TokenId right) const {
  if (entries_.empty()) return nullptr;
  const Entry& entry = entries_[slot_of(pair_of(left, right))];
  return entry.pair == empty ? nullptr : &entry.merge;
}

Merges merges_of_ranks(const Vocabulary& ranks) {
  Merges merges;
  for (TokenId id = 0; id < ranks.size(); ++id) {
    if (!ranks.has(id)) continue;
    const std::string_view bytes = ranks.bytes(id);
    for (std::size_t at = 1; at < bytes.size(); ++at) {
      const TokenId left = ranks.find(bytes.substr(0, at)), right = ranks.find(bytes.substr(at));
      if (left != no_token && right != no_token) merges.add(left, right, {static_cast<std::uint32_t>(id), id});
    }
  }
  return merges;
}

void apply_merges(const Merges& merges, MergeScratch& scratch) {
  if (scratch.ids.size() <= 1) return;
  if (scratch.ids.size() <= short_piece) {
    merge_short(merges, scratch);
  } else {
    merge_long(merges, scratch);
  }
}

}  // namespace trainctl
