// Cuts words into the longest tokens from their beginning.
#include "io/text/models/word_models.h"

#include <algorithm>

#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

class WordModel : public Model {
 public:
  explicit WordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  bool token(TokenId id, std::string& text) const override {
    if (!vocabulary_.has(id)) return false;
    text = vocabulary_.bytes(id);
    return true;
  }
  TokenId find(std::string_view text) const override { return vocabulary_.find(text); }
  TokenId size() const override { return vocabulary_.size(); }

 protected:
  Vocabulary vocabulary_;
};

class WordPieceModel final : public WordModel {
 public:
  WordPieceModel(Vocabulary vocabulary, WordPieceOptions options)
      : WordModel(std::move(vocabulary)), options_(std::move(options)) {}

  void encode(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const override {
    const std::size_t before = ids.size();
    const auto unknown = [&] {
      ids.resize(before);
      ids.push_back(options_.unknown);
    };
    if (word.size() > options_.longest_word && character_count(word) > options_.longest_word) return unknown();
    for (std::size_t begin = 0; begin < word.size();) {
      std::string& text = scratch.text;
      text = begin > 0 ? options_.continuing_prefix : "";
      const std::size_t prefix = text.size();
      std::size_t size = std::min(word.size() - begin, vocabulary_.longest());
      text += word.substr(begin, size);
      TokenId id = no_token;
      for (; size > 0; --size) {
        const bool whole =
            begin + size == word.size() || (static_cast<unsigned char>(word[begin + size]) & 0xc0) != 0x80;
        if (whole && (id = vocabulary_.find({text.data(), prefix + size})) != no_token) break;
      }
      if (id == no_token) return unknown();
      ids.push_back(id);
      begin += size;
    }
  }

  TokenId unknown() const override { return options_.unknown; }

 private:
  WordPieceOptions options_;
};

class WordLevelModel final : public WordModel {
 public:
  WordLevelModel(Vocabulary vocabulary, TokenId unknown) : WordModel(std::move(vocabulary)), unknown_(unknown) {}

  void encode(std::string_view word, ModelScratch&, std::vector<TokenId>& ids) const override {
    const TokenId id = vocabulary_.find(word);
    if (id != no_token || unknown_ != no_token) ids.push_back(id != no_token ? id : unknown_);
  }

  TokenId unknown() const override { return unknown_; }

 private:
  TokenId unknown_;
};

}  // namespace

std::unique_ptr<Model> make_word_piece(Vocabulary vocabulary, WordPieceOptions options) {
  return std::make_unique<WordPieceModel>(std::move(vocabulary), std::move(options));
}
std::unique_ptr<Model> make_word_level(Vocabulary vocabulary, TokenId unknown) {
  return std::make_unique<WordLevelModel>(std::move(vocabulary), unknown);
}

}  // namespace trainctl
