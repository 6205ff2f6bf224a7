// Encodes a piece by byte-pair encoding: first symbols by bytes or characters, then merges.
#include "io/text/models/bpe.h"

#include <algorithm>
#include <array>

#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

class BpeModel final : public Model {
 public:
  BpeModel(Vocabulary vocabulary, Merges merges, BpeOptions options, OtherTokens others)
      : vocabulary_(std::move(vocabulary)),
        merges_(std::move(merges)),
        options_(std::move(options)),
        others_(std::move(others)) {
    size_ = std::max(vocabulary_.size(), others_.empty() ? 0 : others_.rbegin()->first + 1);
    for (int byte = 0; byte < 256; ++byte) {
      const char one = static_cast<char>(byte);
      of_byte_[static_cast<std::size_t>(byte)] =
          options_.bytes ? vocabulary_.find({&one, 1}) : vocabulary_.find(format("<0x{:02X}>", byte));
    }
  }

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& ids) const override {
    if (options_.whole_tokens) {
      const TokenId whole = vocabulary_.find(piece);
      if (whole != no_token) return ids.push_back(whole);
    }
    std::vector<TokenId>& symbols = scratch.merging.ids;
    symbols.clear();
    if (options_.bytes) {
      for (const char c : piece) add(of_byte_[static_cast<unsigned char>(c)], symbols);
    } else {
      add_characters(piece, scratch.text, symbols);
    }
    apply_merges(merges_, scratch.merging);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

  bool token(TokenId id, std::string& text) const override {
    const auto other = others_.find(id);
    if (other != others_.end()) return text = other->second, true;
    if (!vocabulary_.has(id)) return false;
    text = vocabulary_.bytes(id);
    return true;
  }
  TokenId find(std::string_view text) const override { return vocabulary_.find(text); }
  TokenId size() const override { return size_; }
  TokenId unknown() const override { return options_.unknown; }

 private:
  void add(TokenId id, std::vector<TokenId>& symbols) const {
    if (id == no_token) id = options_.unknown;
    if (id != no_token) symbols.push_back(id);
  }

  // Appends the ids of a character's bytes; false if one of them has no token.
  bool add_bytes(std::string_view character, std::vector<TokenId>& symbols) const {
    const auto of = [this](char c) { return of_byte_[static_cast<unsigned char>(c)]; };
    if (std::any_of(character.begin(), character.end(), [&](char c) { return of(c) == no_token; })) return false;
    for (const char c : character) symbols.push_back(of(c));
    return true;
  }

  void add_characters(std::string_view piece, std::string& text, std::vector<TokenId>& symbols) const {
    bool after_unknown = false;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t length = std::max<std::size_t>(1, utf8_length(piece.substr(at)));
      text.clear();
      if (at > 0) text += options_.continuing_prefix;
      text += piece.substr(at, length);
      if (at + length == piece.size()) text += options_.word_suffix;
      const TokenId id = vocabulary_.find(text);
      at += length;
      if (id != no_token) {
        symbols.push_back(id);
      } else if (options_.byte_fallback && add_bytes(text, symbols)) {
      } else {
        if (!(options_.fuse_unknown && after_unknown)) add(no_token, symbols);
        after_unknown = true;
        continue;
      }
      after_unknown = false;
    }
  }

  Vocabulary vocabulary_;
  Merges merges_;
  BpeOptions options_;
  OtherTokens others_;
  TokenId size_ = 0;
  std::array<TokenId, 256> of_byte_ = {};
};

}  // namespace

std::unique_ptr<Model> make_bpe(Vocabulary vocabulary, Merges merges, BpeOptions options, OtherTokens others) {
  return std::make_unique<BpeModel>(std::move(vocabulary), std::move(merges), std::move(options), std::move(others));
}

}  // namespace trainctl
