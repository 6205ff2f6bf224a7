// A model: the vocabulary that encodes the pieces of a split text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/text/models/merges.h"
#include "io/text/tokenizer.h"

namespace trainctl {

// The memory in which a thread's encoder works, so that encoding a piece allocates nothing in the long run.
struct ModelScratch {
  MergeScratch merging;
  struct Step {
    double score = 0;
    std::size_t begin = 0;
    TokenId id = 0;
    bool reached = false;
  };
  std::vector<Step> steps;  // the best way to each byte of a piece, for Unigram
  std::string text;
};

class Model {
 public:
  virtual ~Model() = default;

  // Appends the ids of a piece, which is not empty. A piece is UTF-8 unless the model encodes bytes.
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& ids) const = 0;
  // The stored text of a token: bytes if the model encodes bytes, else characters. False if no token has the id.
  virtual bool token(TokenId id, std::string& text) const = 0;
  virtual TokenId find(std::string_view text) const = 0;
  virtual TokenId size() const = 0;     // the largest id plus one
  virtual TokenId unknown() const = 0;  // the id of a text without tokens; no_token: there is none
};

}  // namespace trainctl
