// The files of a Hugging Face folder that describe a run's tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/datasets/text/text_tokenizer.h"

namespace trainctl {

// What the folder says about the tokenizer besides its vocabulary.
struct TokenizerUse {
  std::optional<TokenId> begin_token, end_token;  // the tokens with which documents begin and end, if they are known
  std::optional<std::int64_t> positions;          // the most tokens of a text, if the network limits them
};

// Whether transformers reads the tokenizer's file: a tokenizer.json or a model of SentencePiece.
bool is_read_by_transformers(const TextTokenizer& tokenizer);

// Copies a tokenizer's file, which transformers must read, and the files about it that lie beside it. Adds the special
// tokens and the length of texts that these files do not name to tokenizer_config.json.
void write_tokenizer_files(const TextTokenizer& tokenizer, const TokenizerUse& use, const std::string& folder);

// The special token that tokenizer_config.json or special_tokens_map.json, beside the tokenizer's file, names by a key
// such as bos_token; empty if they name none, or one that the tokenizer lacks.
std::optional<TokenId> described_token(const TextTokenizer& tokenizer, const char* key);

}  // namespace trainctl
