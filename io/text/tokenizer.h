// A tokenizer: the two-way map between text and the numbers of its tokens, which are in [0, vocabulary_size()).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The number of a token in its vocabulary.
using TokenId = std::int32_t;

// A token with a meaning of its own, such as <|endoftext|>, which no merge produces.
struct SpecialToken {
  std::string text;
  TokenId id = 0;

  bool operator==(const SpecialToken&) const = default;
};

// Encodes texts on one thread. It keeps the ids of words that it has seen, in memory of a fixed size.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // Appends the ids of a whole text to `ids`. Throws Error{data} with the offset of the first byte that is not UTF-8 if
  // the tokenizer does not take any bytes; the error calls the text `name`, which is the name of its file.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids, const std::string& name = "the text") = 0;
};

// Decodes ids one by one, as a network generates them. It holds back the bytes of an unfinished character.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Appends the text that the next token completes. Throws Error{data} if no token has this id.
  virtual void decode(TokenId id, std::string& text) = 0;
  // Appends the bytes that were held back; they are an unfinished character.
  virtual void finish(std::string& text) = 0;
};

// Whether the text of a special token becomes the id of this token, or is encoded like other text. A text from outside
// must not be able to end a document, so that users choose.
enum class SpecialText { recognized, plain };

// A tokenizer never changes after it is made, and threads may share it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The kind for people, such as "byte-level BPE".
  virtual std::string kind() const = 0;
  // The largest id plus one.
  virtual std::int64_t vocabulary_size() const = 0;
  // Whether encoders accept every sequence of bytes, and decoders return it; otherwise texts must be UTF-8.
  virtual bool takes_any_bytes() const = 0;
  // The special tokens, in the order of their ids.
  virtual const std::vector<SpecialToken>& special_tokens() const = 0;
  // The id of the token that stands for every text that the vocabulary lacks, such as [UNK]; no value if there is none.
  virtual std::optional<TokenId> unknown_token() const = 0;
  // The ids that the tokenizer's file puts before and after a text, such as those of [CLS] and [SEP]. Encoders leave
  // them out.
  virtual const std::vector<TokenId>& ids_before() const = 0;
  virtual const std::vector<TokenId>& ids_after() const = 0;

  virtual std::unique_ptr<Encoder> make_encoder(SpecialText special = SpecialText::recognized) const = 0;
  virtual std::unique_ptr<Decoder> make_decoder() const = 0;

  // The text of a sequence of ids. Throws Error{data} if no token has one of the ids.
  std::string decode(std::span<const TokenId> ids) const;
};

// Throws Error{data} with the offset of the first byte of a text that is not UTF-8.
void require_utf8(std::string_view text, const std::string& name, const std::string& kind);

// The Error{data} for an id that has no token.
[[noreturn]] void throw_no_token(TokenId id, std::int64_t vocabulary_size);

}  // namespace trainctl
