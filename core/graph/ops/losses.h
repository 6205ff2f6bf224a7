// Losses, with their gradients: sums over samples, weighted by the sample weights, accumulated into
// scalars of role reduced. The division by the global sum of weights happens after the reduction.
//
// Common inputs: predictions [N, P..., K] (float32 or bfloat16) for samples of positions P, of which there may be none,
// targets (int32 [N, P...] for a loss of class numbers, else float32 [N, P..., K]), weights float32 [N] (0 for a
// skipped sample) or [N, P...] (0 for a position that a mask leaves out). A sum goes over the samples and their
// positions, each with its own weight or that of its sample. Sums are taken in float32 over one micro-batch.
#pragma once

#include <utility>
#include <variant>

#include "core/graph/op.h"
#include "core/graph/ops/losses/binary_crossentropy.h"
#include "core/graph/ops/losses/categorical_crossentropy.h"
#include "core/graph/ops/losses/huber.h"
#include "core/graph/ops/losses/mean_squared_error.h"

namespace trainctl {

// All losses; each is in a file in core/graph/ops/losses/ (see rule.h there).
using LossRule =
    std::variant<SparseCategoricalCrossentropy, CategoricalCrossentropy, BinaryCrossentropy, MeanSquaredError, Huber>;

std::string_view name_of(const LossRule& rule);
LossTargets targets_of(const LossRule& rule);
LossLink link_of(const LossRule& rule);

// The number of rows of predictions that share one weight: all positions of a sample, or one where each position has a
// weight of its own.
std::int64_t rows_per_weight(const Shape& predictions, const Shape& weights);

// Inputs: predictions, targets, weights. Outputs: the weighted sum of losses, float32 scalar (role reduced); where it
// counts, the sum of the weights, likewise; in training the gradient by the predictions, like these, of the sum of
// losses times `scale`.
struct Loss final : OpDef {
  LossRule rule;
  bool training = false;
  bool accumulate = false;  // add to what the sums hold
  float scale = 1;          // of the gradient alone
  bool counts = true;       // of several losses of the same samples, one counts them

  Loss(LossRule r, bool t, bool a, float s = 1, bool c = true)
      : rule(std::move(r)), training(t), accumulate(a), scale(s), counts(c) {}
  // The number of sums, which stand in front of the gradient.
  int sums() const { return counts ? 2 : 1; }
  std::string_view kind() const override { return "loss"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
