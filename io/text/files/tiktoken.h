// Rank files of tiktoken: a line for each token with its bytes in base64 and its rank, which is also its id.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/text/tokenizer.h"

namespace trainctl {

// Whether a text looks like a rank file: base64, a space, a number.
bool looks_like_ranks(std::string_view text);

// The tokenizer of a rank file. The published files r50k_base, p50k_base, cl100k_base and o200k_base are recognized by
// the number of their ranks and get the pattern and special tokens that tiktoken gives them; `encoding` names one of
// them, or gpt2, p50k_edit or o200k_harmony, for other files. Throws Error{data} with the line of a mistake, and if the
// encoding is neither named nor recognized; Error{config} if its name is unknown.
std::unique_ptr<Tokenizer> read_ranks(std::string_view text, const std::string& path, const std::string& encoding);

}  // namespace trainctl
