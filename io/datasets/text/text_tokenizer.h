// The tokenizer of a data set: its file, and the tokens with which documents begin and end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/values.h"
#include "io/text/tokenizer.h"

namespace trainctl {

enum class NamedTokenizer { bytes };
template <>
struct EnumNames<NamedTokenizer> {
  static constexpr EnumName<NamedTokenizer> names[] = {{NamedTokenizer::bytes, "bytes"}};
};

// The word bytes, or the path of a tokenizer's file or of a folder with such a file.
using TokenizerName = std::variant<NamedTokenizer, Path>;

// The value of the key `encoding` with which the file tells its encoding.
inline constexpr const char* automatic_encoding = "auto";
// What the key `encoding` of data sets means.
inline constexpr const char* encoding_meaning =
    "The encoding of tiktoken whose pattern and special tokens a rank file has, such as cl100k_base; auto: that of the "
    "published file with as many ranks.";
// Reports an encoding without a tokenizer.
void check_encoding(const std::string& encoding, bool has_tokenizer, const Node& data, Reader& reader);

struct TextTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string path;  // for messages
  std::string hash;  // of the tokenizer's file and the encoding, as text
};

// Opens a tokenizer. In a folder it is tokenizer.json, tokenizer.model, spiece.model or the only .tiktoken file.
// `encoding` names the encoding of a rank file of tiktoken; auto: the number of ranks tells it. Throws Error{data} if
// the file is missing, damaged or of an unknown kind, and Error{config} if it has no such encoding.
TextTokenizer open_tokenizer(const TokenizerName& name, const std::string& encoding = automatic_encoding);

// The id of the token with which documents end. `option` is `auto` (the vocabulary's token of this purpose, if it has
// one of the usual names), `none`, or the text of a special token. Throws Error{config} if there is no such token.
std::optional<TokenId> end_token_of(const TextTokenizer& tokenizer, const std::string& option);
// The id of the token with which documents begin, by the same rules.
std::optional<TokenId> begin_token_of(const TextTokenizer& tokenizer, const std::string& option);

// How a language model reads and writes text.
struct LanguageText {
  TextTokenizer tokenizer;
  std::optional<TokenId> begin_token, end_token;  // the tokens with which documents begin and end
  std::int64_t positions = 0;                     // tokens of a training sample
};

// The number of bytes of text for which each token stands within a text, by id; 0 for special tokens and for the
// unknown token, whose text is lost.
std::vector<float> bytes_of_tokens(const Tokenizer& tokenizer);
// Returns a function that computes bytes_of_tokens() when it is first called, and keeps the result.
std::function<std::shared_ptr<const std::vector<float>>()> counter_of_bytes(std::shared_ptr<const Tokenizer> tokenizer);

// The id that fills a sample after its text: that of the vocabulary's special token for it, or 0.
TokenId padding_token_of(const Tokenizer& tokenizer);

}  // namespace trainctl
