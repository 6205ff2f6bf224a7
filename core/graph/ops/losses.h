// Losses, with their gradients: sums over samples, weighted by the sample weights, accumulated into
// scalars of role reduced. The division by the global sum of weights happens after the reduction.
//
// Common inputs: predictions [N, K] (float32 or bfloat16), targets (int32 [N] where sparse, else float32 [N, K]),
// weights float32 [N] (0 for a skipped sample). Sums are taken in float32 over one micro-batch.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

enum class LossKind {
  sparse_categorical_crossentropy,  // predictions are logits, targets int32 [N]
  categorical_crossentropy,         // predictions are logits, targets float32 [N, K]
  binary_crossentropy,              // predictions are logits, mean over K
  mean_squared_error,               // mean over K
};

std::string_view name_of(LossKind kind);

// Inputs: predictions, targets, weights. Outputs: the weighted sum of losses and the sum of the weights, float32
// scalars (role reduced); in training also the loss's gradient by the predictions (like predictions, of the sum).
struct Loss final : OpDef {
  LossKind loss;
  float label_smoothing = 0;
  bool training = false;
  bool accumulate = false;  // add to what the sums hold

  Loss(LossKind k, float smoothing, bool t, bool a) : loss(k), label_smoothing(smoothing), training(t), accumulate(a) {}
  std::string_view kind() const override { return "loss"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
};

}  // namespace trainctl
