// Losses, with their gradients: sums over samples, weighted by the sample weights, accumulated into
// scalars of role reduced. The division by the global sum of weights happens after the reduction.
//
// Common inputs: predictions [N, P..., K] (float32 or bfloat16) for samples of positions P, of which there may be none,
// targets (int32 [N, P...] for a loss of class numbers, else float32 [N, P..., K]), weights float32 [N] (0 for a
// skipped sample) or [N, P...] (0 for a position that a mask leaves out). A sum goes over the samples and their
// positions, each with its own weight or that of its sample. A loss over samples is computed from all positions of a
// sample, by their own weights where they have some, and counts as the loss of each of them. Sums are taken in float32
// over one micro-batch.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "core/graph/ops/losses/binary_crossentropy.h"
#include "core/graph/ops/losses/binary_focal_crossentropy.h"
#include "core/graph/ops/losses/categorical_crossentropy.h"
#include "core/graph/ops/losses/categorical_focal_crossentropy.h"
#include "core/graph/ops/losses/categorical_hinge.h"
#include "core/graph/ops/losses/dice.h"
#include "core/graph/ops/losses/huber.h"
#include "core/graph/ops/losses/kl_divergence.h"
#include "core/graph/ops/losses/log_cosh.h"
#include "core/graph/ops/losses/mean_absolute_error.h"
#include "core/graph/ops/losses/mean_absolute_percentage_error.h"
#include "core/graph/ops/losses/mean_squared_error.h"
#include "core/graph/ops/reshaping/columns.h"

namespace trainctl {

// All losses; each is in a file in core/graph/ops/losses/ (see rule.h there).
using LossRule = std::variant<SparseCategoricalCrossentropy, CategoricalCrossentropy,
                              SparseCategoricalFocalCrossentropy, CategoricalFocalCrossentropy, KlDivergence,
                              CategoricalHinge, BinaryCrossentropy, BinaryFocalCrossentropy, Dice, MeanSquaredError,
                              MeanAbsoluteErrorLoss, MeanAbsolutePercentageErrorLoss, Huber, LogCosh>;

std::string_view name_of(const LossRule& rule);
LossTargets targets_of(const LossRule& rule);
LossLink link_of(const LossRule& rule);

// The number of rows of predictions that share one weight: all positions of a sample, or one where each position has a
// weight of its own.
std::int64_t rows_per_weight(const Shape& predictions, const Shape& weights);

// What class_sums finds in a row of one rank's classes: the largest prediction and its class (the first of equals), and
// with it the sums of the rule's class_sums().
enum ClassSum : int { class_largest, class_best, class_exponentials, class_targets, class_products, class_sums };

// Whether the loss can be computed from class_sums; another one takes the predictions of all classes.
bool is_over_classes(const LossRule& rule);

// Inputs: predictions of a part of the classes [N, P..., C], targets of all. Outputs: float32 [N, P..., class_sums].
struct ClassSums final : OpDef {
  LossRule rule;
  ColumnRange part;  // of the classes

  ClassSums(LossRule r, ColumnRange p) : rule(std::move(r)), part(p) {}
  std::string_view kind() const override { return "class_sums"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// Inputs: predictions, targets, weights; where each rank has predictions of a part of the classes also the class sums
// of all ranks [N, P..., ranks * class_sums], targets being those of all classes. Outputs: the weighted sum of losses,
// float32 scalar (role reduced); where it counts, the sum of the weights, likewise; in training the gradient by the
// predictions, like these, of the sum of losses times `scale`.
struct Loss final : OpDef {
  LossRule rule;
  bool training = false;
  bool accumulate = false;          // add to what the sums hold
  float scale = 1;                  // of the gradient alone
  bool counts = true;               // of several losses of the same samples, one counts them
  std::optional<ColumnRange> part;  // of the classes; nothing: predictions are of all

  Loss(LossRule r, bool t, bool a, float s = 1, bool c = true, std::optional<ColumnRange> p = {})
      : rule(std::move(r)), training(t), accumulate(a), scale(s), counts(c), part(p) {}
  // The number of sums, which stand in front of the gradient.
  int sums() const { return counts ? 2 : 1; }
  std::string_view kind() const override { return "loss"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
