// Padding masks of tokens, which all embeddings make alike.
#pragma once

#include "core/graph/ops/masks.h"
#include "core/layers/layer.h"

namespace trainctl {

// The meaning of the key `mask_zero`.
inline constexpr const char* mask_zero_meaning =
    "Whether token 0 is padding. The padding mask is passed on with the output to the layers that follow: recurrent "
    "layers leave such positions out, attention does not see them, and means, the statistics of batch_normalization, "
    "losses and metrics do not count them.";

// The mask of tokens [N, P...], which hides token 0.
inline TensorId mask_of_tokens(Layer& layer, const Feature& tokens) {
  return layer.op(std::make_shared<PositionMask>(0.0f), {tokens.tensor})[0];
}

}  // namespace trainctl
