// Models that look words up: WordPiece, which cuts a word into the longest tokens, and WordLevel.
#pragma once

#include <memory>
#include <string>

#include "io/text/models/model.h"
#include "io/text/models/vocabulary.h"

namespace trainctl {

struct WordPieceOptions {
  TokenId unknown = no_token;            // the id of a word that cannot be cut into tokens
  std::string continuing_prefix = "##";  // what tokens begin with that continue a word
  std::size_t longest_word = 100;        // in characters; a longer word is unknown
};

// A word becomes the longest token that it begins with, then the longest one that its rest begins with, and so on. If
// no token fits a rest, the whole word becomes `unknown`.
std::unique_ptr<Model> make_word_piece(Vocabulary vocabulary, WordPieceOptions options);
// A word that the vocabulary lacks becomes `unknown`; no_token: it is left out.
std::unique_ptr<Model> make_word_level(Vocabulary vocabulary, TokenId unknown);

}  // namespace trainctl
