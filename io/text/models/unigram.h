// Unigram: the tokens of a piece are those whose scores have the largest sum (the Viterbi algorithm).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/text/models/model.h"
#include "io/text/models/vocabulary.h"

namespace trainctl {

struct UnigramOptions {
  TokenId unknown = no_token;  // the id of characters that no token has
  bool byte_fallback = false;  // such characters become the tokens <0x00> to <0xFF> of their bytes
};

// The tokens and their scores by id. An empty token, or one that occurs twice, is never found.
std::unique_ptr<Model> make_unigram(std::vector<std::pair<std::string, double>> tokens, UnigramOptions options);

}  // namespace trainctl
