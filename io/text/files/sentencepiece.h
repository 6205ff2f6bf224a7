// Models of SentencePiece, encoded by its library: Unigram and BPE models, with their own normalization.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/text/tokenizer.h"

namespace trainctl {

// Whether a file begins as a model of SentencePiece does.
bool looks_like_sentencepiece(std::string_view content);

// The tokenizer of a model. Throws Error{data} if the library refuses the model. Special tokens are the model's control
// symbols; SentencePiece never makes them of a text, so that SpecialText has no effect.
std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& path);

}  // namespace trainctl
