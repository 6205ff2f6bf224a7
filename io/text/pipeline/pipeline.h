// A tokenizer made of the parts that tokenizer.json names: added tokens, normalizers, split steps, a model and a
// decoder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/text/models/model.h"
#include "io/text/pipeline/added_tokens.h"
#include "io/text/pipeline/normalizer.h"
#include "io/text/pipeline/pre_tokenizer.h"
#include "io/text/pipeline/text_of_tokens.h"

namespace trainctl {

struct PipelineParts {
  std::string kind;
  bool bytes = false;  // the model encodes bytes
  std::vector<AddedToken> added;
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  std::unique_ptr<Splitter> splitter;             // null: `steps` split
  std::vector<std::unique_ptr<SplitStep>> steps;  // none and no splitter: a text is one piece
  std::unique_ptr<Model> model;
  DecoderOptions decoder;
  std::vector<TokenId> before, after;
};

std::unique_ptr<Tokenizer> make_pipeline(PipelineParts parts);

}  // namespace trainctl
