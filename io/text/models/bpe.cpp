// Encodes a piece by byte-pair encoding: first symbols by bytes or characters, then merges.
#include "io/text/models/bpe.h"

#include <algorithm>
#include <array>

#include "core/base/format.h"
#include "core/base/utf8.h"
#include "io/text/models/byte_characters.h"

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
      const auto at = static_cast<std::size_t>(byte);
      fallback_[at] = options_.byte_fallback ? vocabulary_.find(format("<0x{:02X}>", byte)) : no_token;
      if (options_.bytes) of_byte_[at] = vocabulary_.find({&one, 1});
    }
    lacks_bytes_ = options_.bytes && std::ranges::find(of_byte_, no_token) != of_byte_.end();
  }

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& ids) const override {
    if (options_.whole_tokens) {
      const TokenId whole = vocabulary_.find(piece);
      if (whole != no_token) return ids.push_back(whole);
    }
    std::vector<TokenId>& symbols = scratch.merging.ids;
    symbols.clear();
    if (lacks_bytes_) {
      add_known_bytes(piece, symbols);
    } else if (options_.bytes) {
      for (const char c : piece) symbols.push_back(of_byte_[static_cast<unsigned char>(c)]);
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
  // With a token for every byte, no text is unknown.
  TokenId unknown() const override { return options_.bytes && !lacks_bytes_ ? no_token : options_.unknown; }

 private:
  // Appends what stands for a character without a token: the ids of its bytes, or the unknown token. Returns whether it
  // is unknown.
  bool add_missing(std::string_view character, bool after_unknown, std::vector<TokenId>& symbols) const {
    if (add_bytes(character, symbols)) return false;
    const bool fused = options_.fuse_unknown && after_unknown;
    if (options_.unknown != no_token && !fused) symbols.push_back(options_.unknown);
    return true;
  }

  // Appends the ids of a character's bytes; false if one of them has no token.
  bool add_bytes(std::string_view character, std::vector<TokenId>& symbols) const {
    const auto of = [this](char c) { return fallback_[static_cast<unsigned char>(c)]; };
    if (std::any_of(character.begin(), character.end(), [&](char c) { return of(c) == no_token; })) return false;
    for (const char c : character) symbols.push_back(of(c));
    return true;
  }

  // As add_characters(), by the characters that stand for the bytes.
  void add_known_bytes(std::string_view piece, std::vector<TokenId>& symbols) const {
    bool after_unknown = false;
    for (const char& c : piece) {
      const TokenId id = of_byte_[static_cast<unsigned char>(c)];
      if (id != no_token) symbols.push_back(id);
      after_unknown = id == no_token && add_missing(characters_of_bytes({&c, 1}), after_unknown, symbols);
    }
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
      if (id != no_token) symbols.push_back(id);
      after_unknown = id == no_token && add_missing(text, after_unknown, symbols);
    }
  }

  Vocabulary vocabulary_;
  Merges merges_;
  BpeOptions options_;
  OtherTokens others_;
  TokenId size_ = 0;
  bool lacks_bytes_ = false;
  std::array<TokenId, 256> of_byte_ = {}, fallback_ = {};  // the ids of bytes, and of the tokens <0x00> to <0xFF>
};

}  // namespace

std::unique_ptr<Model> make_bpe(Vocabulary vocabulary, Merges merges, BpeOptions options, OtherTokens others) {
  return std::make_unique<BpeModel>(std::move(vocabulary), std::move(merges), std::move(options), std::move(others));
}

}  // namespace trainctl
