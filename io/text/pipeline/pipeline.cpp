// Runs the parts of a tokenizer one after the other on a text.
#include "io/text/pipeline/pipeline.h"

#include <algorithm>

#include "io/text/models/piece_cache.h"
#include "io/text/models/vocabulary.h"
#include "io/text/pipeline/growth.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

// `begin`: see Normalizer::begin_after(); null if no step reads it.
void normalize(std::string& text, const std::vector<std::unique_ptr<Normalizer>>& normalizers,
               std::size_t* begin = nullptr) {
  const std::size_t most = most_of(text.size());
  for (const auto& normalizer : normalizers) {
    if (begin != nullptr) *begin = normalizer->begin_after(text, *begin);
    normalizer->normalize(text);
    if (text.size() > most) throw_grown();
  }
}

std::vector<AddedToken> tokens_of(const std::vector<AddedToken>& all, bool normalized,
                                  const std::vector<std::unique_ptr<Normalizer>>& normalizers) {
  std::vector<AddedToken> tokens;
  for (AddedToken token : all) {
    if (token.normalized != normalized) continue;
    if (normalized) normalize(token.text, normalizers);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

class Pipeline final : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts)
      : parts_(std::move(parts)),
        all_(parts_.added),
        raw_(tokens_of(parts_.added, false, parts_.normalizers)),
        normalized_(tokens_of(parts_.added, true, parts_.normalizers)) {
    size_ = parts_.model->size();
    any_bytes_ = parts_.bytes;
    for (const AddedToken& token : parts_.added) {
      size_ = std::max(size_, token.id + 1);
      if (token.special) special_.push_back({token.text, token.id});
    }
    for (const auto& normalizer : parts_.normalizers) any_bytes_ &= normalizer->takes_any_bytes();
    for (const auto& step : parts_.steps) reads_begin_ |= step->reads_begin();
    std::sort(special_.begin(), special_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }

  std::string kind() const override { return parts_.kind; }
  std::int64_t vocabulary_size() const override { return size_; }
  bool takes_any_bytes() const override { return any_bytes_; }
  const std::vector<SpecialToken>& special_tokens() const override { return special_; }
  std::optional<TokenId> unknown_token() const override {
    const TokenId id = parts_.model->unknown();
    return id == no_token ? std::nullopt : std::optional(id);
  }
  const std::vector<TokenId>& ids_before() const override { return parts_.before; }
  const std::vector<TokenId>& ids_after() const override { return parts_.after; }
  std::unique_ptr<Encoder> make_encoder(SpecialText special) const override;
  std::unique_ptr<Decoder> make_decoder() const override {
    return make_text_decoder(*parts_.model, all_, parts_.decoder, size_);
  }

 private:
  class PipelineEncoder;

  PipelineParts parts_;
  AddedTokens all_, raw_, normalized_;
  TokenId size_ = 0;
  bool any_bytes_ = false;
  bool reads_begin_ = false;  // whether a step treats the beginning of a text in another way
  std::vector<SpecialToken> special_;
};

class Pipeline::PipelineEncoder final : public Encoder {
 public:
  PipelineEncoder(const Pipeline& pipeline, SpecialText special)
      : pipeline_(pipeline), special_(special), cache_(*pipeline.parts_.model) {}

  void encode(std::string_view text, std::vector<TokenId>& ids, const std::string& name) override {
    if (!pipeline_.any_bytes_) require_utf8(text, name, pipeline_.parts_.kind);
    const auto token = [&ids](TokenId id) { ids.push_back(id); };
    pipeline_.raw_.cut(
        text, special_,
        [&](std::string_view part) {
          const bool begins = pipeline_.reads_begin_ && !part.empty() && part.data() == text.data();
          std::size_t begin = begins ? first_character(part).length : 0;
          const std::string_view normal = normalized(part, begins ? &begin : nullptr);
          pieces_.begin = normal.substr(0, begin);
          pipeline_.normalized_.cut(
              normal, special_,
              [&, first = pieces_.begin](std::string_view piece) {
                pieces_.begin = first;
                encode_part(piece, ids);
              },
              token);
        },
        token);
  }

 private:
  std::string_view normalized(std::string_view text, std::size_t* begin) {
    if (pipeline_.parts_.normalizers.empty()) return text;
    text_ = text;
    normalize(text_, pipeline_.parts_.normalizers, begin);
    return text_;
  }

  void encode_part(std::string_view text, std::vector<TokenId>& ids) {
    if (text.empty()) return;
    if (pipeline_.parts_.splitter) return cache_.encode(text, *pipeline_.parts_.splitter, ids);
    pieces_.texts.clear();
    pieces_.pieces.assign(1, text);
    pieces_.left = most_of(text.size());
    for (const auto& step : pipeline_.parts_.steps) step->split(pieces_);
    for (const std::string_view piece : pieces_.pieces) cache_.encode(piece, ids);
  }

  const Pipeline& pipeline_;
  SpecialText special_;
  PieceCache cache_;
  Pieces pieces_;
  std::string text_;
};

std::unique_ptr<Encoder> Pipeline::make_encoder(SpecialText special) const {
  return std::make_unique<PipelineEncoder>(*this, special);
}

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline(PipelineParts parts) { return std::make_unique<Pipeline>(std::move(parts)); }

}  // namespace trainctl
