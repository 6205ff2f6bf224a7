// SentencePiece's compiled map of characters: a double-array trie (Darts) from texts to offsets of their replacements.
#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "io/text/pipeline/growth.h"
#include "io/text/pipeline/normalizer.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

// The fields of a unit of the trie.
struct TrieUnit {
  std::uint32_t bits;
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffff; }
  std::uint32_t label() const { return bits & 0x800000ff; }
  std::uint32_t offset() const { return bits >> 10 << ((bits & 0x200) >> 6); }
};

class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(const std::string& bytes) {
    std::uint32_t size = 0;
    if (bytes.size() >= 4) std::memcpy(&size, bytes.data(), 4);
    if (bytes.size() < 4 || size % 4 != 0 || size == 0 || size > bytes.size() - 4) {
      throw Error(ErrorKind::data, "precompiled_charsmap is cut short");
    }
    units_.resize(size / 4);
    std::memcpy(units_.data(), bytes.data() + 4, size);
    texts_ = bytes.substr(4 + size);
  }

  void normalize(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    const std::string_view all = text;
    for (std::size_t at = 0; at < all.size();) {
      const std::string_view cluster = all.substr(at, cluster_size(all.substr(at)));
      at += cluster.size();
      constexpr std::size_t longest_cluster = 5;  // in bytes, of clusters that are replaced as a whole
      if (cluster.size() <= longest_cluster && replace(cluster, out)) continue;
      for (std::size_t i = 0; i < cluster.size();) {
        const std::string_view character = cluster.substr(i, first_character(cluster.substr(i)).length);
        if (!replace(character, out)) out += character;
        i += character.size();
      }
    }
    text.swap(out);
  }
  // tokenizers leaves the alignment to the beginning to the next character if the first one is removed.
  std::size_t begin_after(const std::string& text, std::size_t begin) const override {
    if (begin == 0) return 0;
    std::string whole = text;
    normalize(whole);
    const std::size_t first = whole.empty() ? 0 : first_character(whole).length;
    return std::min(whole.size(), std::max(first, Normalizer::begin_after(text, begin)));
  }

 private:
  // The bytes of the first grapheme cluster of a text.
  static std::size_t cluster_size(std::string_view text) {
    utf8proc_int32_t state = 0;
    Character last = first_character(text);
    std::size_t size = last.length;
    while (size < text.size()) {
      const Character next = first_character(text.substr(size));
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                           static_cast<utf8proc_int32_t>(next.code), &state))
        break;
      size += next.length;
      last = next;
    }
    return size;
  }

  // Appends the replacement of the shortest beginning of `text` that the map has; false if it has none.
  bool replace(std::string_view text, std::string& out) const {
    std::size_t node = TrieUnit{units_[0]}.offset();
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size()) return false;
      const TrieUnit unit{units_[node]};
      if (unit.label() != byte) return false;
      node ^= unit.offset();
      if (!unit.has_leaf()) continue;
      const std::size_t begin = node < units_.size() ? TrieUnit{units_[node]}.value() : texts_.size();
      if (begin >= texts_.size()) return false;
      const std::size_t length = std::min(texts_.find('\0', begin), texts_.size()) - begin;
      if (length > max_inserted) throw_grown();
      out.append(texts_, begin, length);
      return true;
    }
    return false;
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled_normalizer(std::string bytes) {
  return std::make_unique<PrecompiledNormalizer>(bytes);
}

}  // namespace trainctl
