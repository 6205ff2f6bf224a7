// Encodes a text as its bytes.
#include "io/text/files/bytes.h"

#include "io/text/pipeline/added_tokens.h"
#include "io/text/utf8_tail.h"

namespace trainctl {
namespace {

constexpr TokenId byte_end_of_text = 256;

class ByteEncoder final : public Encoder {
 public:
  ByteEncoder(const AddedTokens& added, SpecialText special) : added_(added), special_(special) {}

  void encode(std::string_view text, std::vector<TokenId>& ids, const std::string&) override {
    added_.cut(
        text, special_,
        [&ids](std::string_view part) {
          const auto* bytes = reinterpret_cast<const unsigned char*>(part.data());
          ids.insert(ids.end(), bytes, bytes + part.size());
        },
        [&ids](TokenId id) { ids.push_back(id); });
  }

 private:
  const AddedTokens& added_;
  SpecialText special_;
};

class ByteDecoder final : public Decoder {
 public:
  void decode(TokenId id, std::string& text) override {
    if (id < 0 || id > byte_end_of_text) throw_no_token(id, byte_end_of_text + 1);
    const char byte = static_cast<char>(id);
    tail_.add(id == byte_end_of_text ? std::string_view("<|endoftext|>") : std::string_view(&byte, 1), text);
  }
  void finish(std::string& text) override { tail_.finish(text); }

 private:
  Utf8Tail tail_;
};

class ByteTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return "bytes"; }
  std::int64_t vocabulary_size() const override { return byte_end_of_text + 1; }
  bool takes_any_bytes() const override { return true; }
  const std::vector<SpecialToken>& special_tokens() const override { return special_; }
  std::optional<TokenId> unknown_token() const override { return std::nullopt; }
  const std::vector<TokenId>& ids_before() const override { return none_; }
  const std::vector<TokenId>& ids_after() const override { return none_; }
  std::unique_ptr<Encoder> make_encoder(SpecialText special) const override {
    return std::make_unique<ByteEncoder>(added_, special);
  }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<ByteDecoder>(); }

 private:
  std::vector<SpecialToken> special_ = {{"<|endoftext|>", byte_end_of_text}};
  std::vector<TokenId> none_;
  AddedTokens added_{{{"<|endoftext|>", byte_end_of_text, true}}};
};

}  // namespace

std::unique_ptr<Tokenizer> make_bytes() { return std::make_unique<ByteTokenizer>(); }

}  // namespace trainctl
