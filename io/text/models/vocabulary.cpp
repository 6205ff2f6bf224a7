// The flat hash table of a vocabulary, by XXH3 with linear probing.
#include "io/text/models/vocabulary.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace trainctl {

std::size_t Vocabulary::slot_of(std::string_view bytes) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = xxh3(bytes.data(), bytes.size()) & mask;
  while (slots_[slot] != no_token && this->bytes(slots_[slot]) != bytes) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow() {
  std::vector<TokenId> old(std::max<std::size_t>(1024, 4 * slots_.size()), no_token);
  old.swap(slots_);
  for (const TokenId id : old) {
    if (id != no_token) slots_[slot_of(bytes(id))] = id;
  }
}

bool Vocabulary::add(std::string_view bytes, TokenId id) {
  require(id >= 0 && id <= largest_token && text_.size() + bytes.size() < UINT32_MAX, "a token has no valid id");
  if (2 * (count_ + 1) > slots_.size()) grow();
  const std::size_t slot = slot_of(bytes);
  if (slots_[slot] != no_token || has(id)) return false;
  if (static_cast<std::size_t>(id) >= entries_.size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(text_.size()),
                                            static_cast<std::uint32_t>(bytes.size()), true};
  text_ += bytes;
  slots_[slot] = id;
  ++count_;
  longest_ = std::max(longest_, bytes.size());
  return true;
}

TokenId Vocabulary::find(std::string_view bytes) const {
  return slots_.empty() || bytes.size() > longest_ ? no_token : slots_[slot_of(bytes)];
}

}  // namespace trainctl
