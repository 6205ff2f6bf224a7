// Chooses the next token of a text from the logits of a network.
#pragma once

#include <cstdint>
#include <span>

#include "io/text/tokenizer.h"

namespace trainctl {

// Which tokens may follow, and how likely each one is. With the defaults every token has the probability that the
// network gives it.
struct SamplingOptions {
  double temperature = 1;  // divides the logits; 0: the likeliest token is chosen
  std::int64_t top_k = 0;  // only as many of the likeliest tokens are chosen from; 0: all
  double top_p = 1;        // only the fewest likeliest tokens that together have this probability (nucleus sampling,
                           // Holtzman et al., 2020)
  std::uint64_t seed = 1;

  bool operator==(const SamplingOptions&) const = default;
};

// Returns a token in [0, logits.size()). `text` is the number of the text and `position` that of the token in it: equal
// options, numbers and logits give equal tokens. Of equal logits, the smaller token counts as the likelier one. Tokens
// whose logits are not numbers are never chosen; throws Error{data} if all logits are such.
TokenId choose_token(std::span<const float> logits, const SamplingOptions& options, std::int64_t text,
                     std::int64_t position);

}  // namespace trainctl
