// Looks up pieces of up to 15 bytes as two 64-bit words, and longer ones by their hash.
#include "io/text/models/piece_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/hash.h"
#include "io/text/split/splitter.h"

namespace trainctl {
namespace {

constexpr std::size_t short_entries = std::size_t{1} << 15;  // 1 MiB
constexpr std::size_t long_entries = std::size_t{1} << 12;   // 512 KiB
constexpr std::size_t longest_short = 15;
static_assert(std::endian::native == std::endian::little, "a piece's first byte is the lowest of its word");

struct Key {
  std::uint64_t low = 0, high = 0;
};

// A piece of 1 to 15 bytes, of which 16 can be read.
Key key_of_readable(const char* bytes, std::size_t size) {
  Key key;
  std::memcpy(&key.low, bytes, 8);
  std::memcpy(&key.high, bytes + 8, 8);
  if (size < 8) {
    key.low &= (std::uint64_t{1} << (8 * size)) - 1;
    key.high = 0;
  } else {
    key.high &= (std::uint64_t{1} << (8 * (size - 8))) - 1;
  }
  key.high |= static_cast<std::uint64_t>(size) << 56;
  return key;
}

Key key_of(const char* bytes, std::size_t size, const char* end) {
  if (end - bytes >= 16) return key_of_readable(bytes, size);
  char padded[16] = {};
  std::memcpy(padded, bytes, size);
  return key_of_readable(padded, size);
}

std::size_t pair_of_key(const Key& key) {
  const auto product = static_cast<unsigned __int128>(key.low ^ 0x9E3779B97F4A7C15ULL) *
                       static_cast<unsigned __int128>(key.high ^ 0xC2B2AE3D27D4EB4FULL);
  const auto mixed = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  return (mixed & (short_entries - 1)) & ~std::size_t{1};
}

}  // namespace

PieceCache::PieceCache(const Model& model) : model_(model), short_(short_entries), long_(long_entries) {}

void PieceCache::encode_long(std::string_view piece, std::vector<TokenId>& ids) {
  if (piece.size() > sizeof(LongEntry::bytes)) return model_.encode(piece, scratch_, ids);
  LongEntry& entry = long_[xxh3(piece.data(), piece.size()) & (long_entries - 1)];
  if (std::string_view(entry.bytes, entry.size) == piece) {
    ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
    return;
  }
  const std::size_t before = ids.size();
  model_.encode(piece, scratch_, ids);
  const std::size_t count = ids.size() - before;
  if (count > std::size(entry.ids)) return;
  entry.size = static_cast<std::uint8_t>(piece.size());
  entry.count = static_cast<std::uint8_t>(count);
  std::copy(piece.begin(), piece.end(), entry.bytes);
  std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), entry.ids);
}

void PieceCache::encode(std::string_view piece, std::vector<TokenId>& ids) {
  if (piece.size() > longest_short) return encode_long(piece, ids);
  const Key key = key_of(piece.data(), piece.size(), piece.data() + piece.size());
  ShortEntry* pair = &short_[pair_of_key(key)];
  for (int way = 0; way < 2; ++way) {
    if (pair[way].low != key.low || pair[way].high != key.high) continue;
    ids.insert(ids.end(), pair[way].ids, pair[way].ids + pair[way].count);
    return;
  }
  const std::size_t before = ids.size();
  encode_long(piece, ids);
  const std::size_t count = ids.size() - before;
  if (count > std::size(pair->ids)) return;
  pair[1] = pair[0];
  pair[0] = {key.low, key.high, {}, static_cast<std::uint32_t>(count)};
  std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), pair[0].ids);
}

void PieceCache::encode(std::string_view text, const Splitter& splitter, std::vector<TokenId>& ids) {
  constexpr std::size_t batch = 256;
  const char* ends[batch];
  TokenId found[3 * batch + 1];  // the ids of known short words, which go to `ids` together
  const char *begin = text.data(), *end = begin + text.size();
  while (begin < end) {
    const std::size_t count = splitter.cut(begin, end, ends, batch);
    TokenId* next = found;
    for (std::size_t i = 0; i < count; ++i) {
      const auto size = static_cast<std::size_t>(ends[i] - begin);
      if (size <= longest_short) [[likely]] {
        const Key key = key_of(begin, size, end);
        const ShortEntry* entry = &short_[pair_of_key(key)];
        entry += entry->low != key.low || entry->high != key.high;
        if (entry->low == key.low && entry->high == key.high) [[likely]] {
          std::memcpy(next, entry->ids, sizeof entry->ids);
          next += entry->count;
          begin = ends[i];
          continue;
        }
      }
      ids.insert(ids.end(), found, next);
      next = found;
      encode({begin, size}, ids);
      begin = ends[i];
    }
    ids.insert(ids.end(), found, next);
  }
}

}  // namespace trainctl
