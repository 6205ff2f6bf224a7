// Byte-pair encoding, over bytes or over characters.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "io/text/models/model.h"
#include "io/text/models/vocabulary.h"

namespace trainctl {

// Parts of a model that tokenizer.json sets.
struct BpeOptions {
  bool bytes = true;              // the first symbols are bytes; otherwise characters
  bool whole_tokens = false;      // a piece that is a token is not merged from its symbols
  bool byte_fallback = false;     // a character without a token becomes the tokens <0x00> to <0xFF> of its bytes
  bool fuse_unknown = false;      // adjacent characters without a token are one unknown token
  TokenId unknown = no_token;     // the id of a symbol without a token; no_token: it is left out
  std::string continuing_prefix;  // what all symbols of a piece but the first begin with, such as "##"
  std::string word_suffix;        // what the last symbol of a piece ends with, such as "</w>"
};

// Tokens that no piece becomes, with their texts: those of byte vocabularies that do not stand for bytes.
using OtherTokens = std::map<TokenId, std::string>;

// With `bytes`, the vocabulary has the bytes that tokens stand for.
std::unique_ptr<Model> make_bpe(Vocabulary vocabulary, Merges merges, BpeOptions options, OtherTokens others = {});

}  // namespace trainctl
