// Finds the best way through a piece with a trie of the tokens, from each byte to the ends of the tokens there.
#include "io/text/models/unigram.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/format.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

// A trie whose nodes' children are neighbours, in the order of their bytes.
class TokenTrie {
 public:
  explicit TokenTrie(const std::vector<std::pair<std::string, double>>& tokens) {
    std::vector<std::pair<std::string_view, TokenId>> sorted;
    for (std::size_t i = 0; i < tokens.size(); ++i) sorted.emplace_back(tokens[i].first, static_cast<TokenId>(i));
    std::sort(sorted.begin(), sorted.end());
    struct Range {
      std::size_t node, begin, end, depth;
    };
    nodes_.emplace_back();
    std::vector<Range> open = {{0, 0, sorted.size(), 0}};
    for (std::size_t next = 0; next < open.size(); ++next) {
      Range range = open[next];
      while (range.begin < range.end && sorted[range.begin].first.size() == range.depth) {
        nodes_[range.node].id = sorted[range.begin++].second;  // of equal tokens the last one, as the reference does
      }
      nodes_[range.node].first = static_cast<std::uint32_t>(nodes_.size());
      while (range.begin < range.end) {
        const char byte = sorted[range.begin].first[range.depth];
        std::size_t end = range.begin;
        while (end < range.end && sorted[end].first[range.depth] == byte) ++end;
        open.push_back({nodes_.size(), range.begin, end, range.depth + 1});
        nodes_.push_back({0, 0, static_cast<unsigned char>(byte), no_token});
        ++nodes_[range.node].count;
        range.begin = end;
      }
      open[next] = {};
    }
    for (std::uint32_t i = 0; i < nodes_[0].count; ++i) roots_[nodes_[1 + i].byte] = 1 + i;
  }

  // Calls found(size, id) for each token with which the text begins.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const {
    std::uint32_t node = roots_[static_cast<unsigned char>(text[0])];
    for (std::size_t size = 1; node != 0; ++size) {
      const Node& here = nodes_[node];
      if (here.id != no_token) found(size, here.id);
      if (size == text.size()) return;
      const auto byte = static_cast<unsigned char>(text[size]);
      const auto begin = nodes_.begin() + here.first, end = begin + here.count;
      const auto child = std::lower_bound(begin, end, byte, [](const Node& a, unsigned char b) { return a.byte < b; });
      node = child != end && child->byte == byte ? static_cast<std::uint32_t>(child - nodes_.begin()) : 0;
    }
  }

 private:
  struct Node {
    std::uint32_t first = 0;
    std::uint16_t count = 0;
    unsigned char byte = 0;
    TokenId id = no_token;
  };
  std::vector<Node> nodes_;
  std::array<std::uint32_t, 256> roots_ = {};
};

class UnigramModel final : public Model {
 public:
  UnigramModel(std::vector<std::pair<std::string, double>> tokens, UnigramOptions options)
      : tokens_(std::move(tokens)), options_(options), trie_(tokens_) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      vocabulary_.add(tokens_[i].first, static_cast<TokenId>(i));
      lowest_ = std::min(lowest_, tokens_[i].second);
    }
    for (int byte = 0; byte < 256; ++byte) {
      of_byte_[static_cast<std::size_t>(byte)] = vocabulary_.find(format("<0x{:02X}>", byte));
    }
  }

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& ids) const override {
    using Step = ModelScratch::Step;
    std::vector<Step>& steps = scratch.steps;
    steps.assign(piece.size() + 1, {});
    const auto offer = [&steps](std::size_t begin, std::size_t end, double score, TokenId id) {
      const double sum = steps[begin].score + score;
      if (!steps[end].reached || sum > steps[end].score) steps[end] = {sum, begin, id, true};
    };
    constexpr double unknown_penalty = 10;  // as in SentencePiece
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t length = first_character(piece.substr(at)).length;
      bool single = false;
      trie_.prefixes(piece.substr(at), [&](std::size_t size, TokenId id) {
        offer(at, at + size, tokens_[static_cast<std::size_t>(id)].second, id);
        single |= size == length;
      });
      if (!single) offer(at, at + length, lowest_ - unknown_penalty, options_.unknown);
      at += length;
    }
    std::vector<Step>::size_type end = piece.size();
    const std::size_t before = ids.size();
    while (end > 0) {  // from the end; unknown neighbours are one token
      std::size_t begin = steps[end].begin;
      if (steps[end].id == options_.unknown) {
        while (begin > 0 && steps[begin].id == options_.unknown) begin = steps[begin].begin;
        add_unknown(piece.substr(begin, end - begin), ids);
      } else {
        ids.push_back(steps[end].id);
      }
      end = begin;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  }

  bool token(TokenId id, std::string& text) const override {
    if (id < 0 || id >= size()) return false;
    text = tokens_[static_cast<std::size_t>(id)].first;
    return true;
  }
  TokenId find(std::string_view text) const override { return vocabulary_.find(text); }
  TokenId size() const override { return static_cast<TokenId>(tokens_.size()); }
  TokenId unknown() const override { return options_.unknown; }

 private:
  // Appends the ids of unknown characters in reverse.
  void add_unknown(std::string_view text, std::vector<TokenId>& ids) const {
    const auto of = [this](char c) { return of_byte_[static_cast<unsigned char>(c)]; };
    const TokenId whole = vocabulary_.find(text);  // several unknown characters may be a token together
    if (whole != no_token) return ids.push_back(whole);
    if (options_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) { return of(c) != no_token; })) {
      for (std::size_t i = text.size(); i-- > 0;) ids.push_back(of(text[i]));
    } else if (options_.unknown != no_token) {
      ids.push_back(options_.unknown);
    }
  }

  std::vector<std::pair<std::string, double>> tokens_;
  UnigramOptions options_;
  TokenTrie trie_;
  Vocabulary vocabulary_;
  double lowest_ = std::numeric_limits<double>::infinity();
  std::array<TokenId, 256> of_byte_ = {};
};

}  // namespace

std::unique_ptr<Model> make_unigram(std::vector<std::pair<std::string, double>> tokens, UnigramOptions options) {
  return std::make_unique<UnigramModel>(std::move(tokens), options);
}

}  // namespace trainctl
