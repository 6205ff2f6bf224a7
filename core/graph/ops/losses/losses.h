// Losses and their gradients. The ops add the losses of samples, multiplied by sample weights, to scalars of role
// reduced; the division by the global sum of weights happens after the reduction.
//
// Common inputs: predictions [N, P..., K] (float32 or bfloat16), where P are the dimensions of the positions in a
// sample (possibly none); targets, int32 [N, P...] for a loss on class numbers, otherwise float32 [N, P..., K];
// weights, float32 [N] (0 for a skipped sample) or [N, P...] (0 for a position that a mask excludes). Sums run over all
// samples and positions; each position has its own weight or the weight of its sample. A loss over samples
// (LossOver::samples) is computed from all positions of a sample, with the weights of the positions if there are any,
// and counts as the loss of each position. Sums over a micro-batch are computed in float32.
//
// A loss over sequences (LossOver::sequences) has predictions [N, T, K] of T steps, targets int32 [N, L] of another
// length, weights [N], and possibly a mask uint8 [N, T] as last input, which is 0 at steps that do not exist. It has
// one loss for each sample.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "core/graph/ops/losses/binary_crossentropy.h"
#include "core/graph/ops/losses/binary_focal_crossentropy.h"
#include "core/graph/ops/losses/categorical_crossentropy.h"
#include "core/graph/ops/losses/categorical_focal_crossentropy.h"
#include "core/graph/ops/losses/categorical_hinge.h"
#include "core/graph/ops/losses/cosine_similarity.h"
#include "core/graph/ops/losses/ctc.h"
#include "core/graph/ops/losses/dice.h"
#include "core/graph/ops/losses/expression_loss.h"
#include "core/graph/ops/losses/hinge.h"
#include "core/graph/ops/losses/huber.h"
#include "core/graph/ops/losses/kl_divergence.h"
#include "core/graph/ops/losses/log_cosh.h"
#include "core/graph/ops/losses/mean_absolute_error.h"
#include "core/graph/ops/losses/mean_absolute_percentage_error.h"
#include "core/graph/ops/losses/mean_squared_error.h"
#include "core/graph/ops/losses/mean_squared_logarithmic_error.h"
#include "core/graph/ops/losses/poisson.h"
#include "core/graph/ops/losses/squared_hinge.h"
#include "core/graph/ops/reshaping/columns.h"

namespace trainctl {

// All losses; each is in a file in core/graph/ops/losses/ (see rule.h there).
using LossRule =
    std::variant<SparseCategoricalCrossentropy, CategoricalCrossentropy, SparseCategoricalFocalCrossentropy,
                 CategoricalFocalCrossentropy, KlDivergence, CategoricalHinge, Hinge, SquaredHinge, BinaryCrossentropy,
                 BinaryFocalCrossentropy, Dice, MeanSquaredError, MeanAbsoluteErrorLoss,
                 MeanAbsolutePercentageErrorLoss, MeanSquaredLogarithmicError, Huber, LogCosh, Poisson,
                 CosineSimilarityLoss, Ctc, ExpressionLoss>;

std::string_view name_of(const LossRule& rule);
LossTargets targets_of(const LossRule& rule);
LossLink link_of(const LossRule& rule);

// The number of rows of predictions that share one weight: all positions of a sample, or 1 if each position has its own
// weight.
std::int64_t rows_per_weight(const Shape& predictions, const Shape& weights);

// The values that the op class_sums computes from a row of one rank's classes: the largest prediction, its class (the
// first one if several are equal), and the three sums of the rule's class_sums().
enum ClassSum : int { class_largest, class_best, class_exponentials, class_targets, class_products, class_sums };

// Whether the loss can be computed from class sums; other losses need the predictions of all classes.
bool is_over_classes(const LossRule& rule);

// Whether the loss has targets that are sequences, and one value for each sample.
bool is_over_sequences(const LossRule& rule);

// Inputs: predictions of a range of the classes [N, P..., C], targets for all classes. Outputs: float32 [N, P...,
// class_sums].
struct ClassSums final : OpDef {
  LossRule rule;
  ColumnRange columns;  // range of the classes

  ClassSums(LossRule r, ColumnRange p) : rule(std::move(r)), columns(p) {}
  std::string_view kind() const override { return "class_sums"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// Inputs: predictions, targets, weights. If each rank has the predictions of a range of the classes, also the class
// sums of all ranks [N, P..., ranks * class_sums]; targets are for all classes. If `of_sums`, the class sums of all
// classes [N, P..., class_sums] take the place of the predictions, without training. Outputs: the weighted sum of
// losses, float32 scalar (role reduced); if `counts`, the sum of the weights, float32 scalar (role reduced); in
// training, the gradient of `scale` times the sum of losses with respect to the predictions, like predictions, in place
// on them.
struct Loss final : OpDef {
  LossRule rule;
  bool training = false;
  bool accumulate = false;  // add to the sums instead of overwriting them
  float scale = 1;          // factor of the gradient only
  bool counts = true;       // whether the op sums the weights; if samples have several losses, only one loss does
  std::optional<ColumnRange> columns;  // range of the classes; empty: predictions are for all classes
  bool of_sums = false;  // reads class sums instead of predictions; `columns` is then the number of classes
  bool masked = false;   // has a mask of the steps as input; only for a loss over sequences

  Loss(LossRule r, bool t, bool a, float s = 1, bool c = true, std::optional<ColumnRange> p = {}, bool sums = false)
      : rule(std::move(r)), training(t), accumulate(a), scale(s), counts(c), columns(p), of_sums(sums) {}
  // Whether ranks hold ranges of the classes, so that the class sums of all ranks are an input.
  bool is_split() const { return columns.has_value() && !of_sums; }
  // The number of sums, which are the outputs before the gradient.
  int sums() const { return counts ? 2 : 1; }
  std::string_view kind() const override { return "loss"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override {
    return training ? std::vector<InPlace>{{0, sums()}} : std::vector<InPlace>{};
  }
};

}  // namespace trainctl
