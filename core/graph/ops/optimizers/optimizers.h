// The optimizer op and the list of all optimizers.
//
// Optimizers work on flat regions: one tensor of role parameter, gradient (its tail: role reduced) or state covers a
// whole region, and the tensors of single parameters are views of it. Counts and offsets are in elements.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/ops/optimizers/adadelta.h"
#include "core/graph/ops/optimizers/adafactor.h"
#include "core/graph/ops/optimizers/adagrad.h"
#include "core/graph/ops/optimizers/adam.h"
#include "core/graph/ops/optimizers/adamax.h"
#include "core/graph/ops/optimizers/ftrl.h"
#include "core/graph/ops/optimizers/lamb.h"
#include "core/graph/ops/optimizers/lars.h"
#include "core/graph/ops/optimizers/lion.h"
#include "core/graph/ops/optimizers/muon.h"
#include "core/graph/ops/optimizers/nadam.h"
#include "core/graph/ops/optimizers/rmsprop.h"
#include "core/graph/ops/optimizers/sgd.h"
#include "core/graph/ops/optimizers/update_range.h"
#include "core/tensor/layout.h"

namespace trainctl {

// A compute copy that the optimizer op writes when it updates the parameter.
struct UpdateCopy {
  std::int64_t offset = 0;  // offset of the parameter in those that the op updates
  Shape shape;
  Layout layout;
};

// All optimizers; each is in a file in core/graph/ops/optimizers/ (see rule.h there).
using OptimizerRule =
    std::variant<Sgd, Adam, AdamW, Nadam, Adamax, RmsProp, Adagrad, Adadelta, Ftrl, Lion, Lamb, Lars, Adafactor, Muon>;

template <class Rule>
concept FactoredRule = requires {
  requires Rule::factored;
};

template <class Rule>
concept OrthogonalRule = requires {
  requires Rule::orthogonal;
};

// A step of an optimizer. Inputs: the gradient region, learning rate (float32 scalar), step (int64 scalar, from 0),
// count (reduced, float32), agree flags, gradient norm. Outputs: the parameter region, the regions of the states that
// the rule keeps, and the copies; outputs() returns the type of each region up to the end of the last range. The rule
// receives gradient / count, scaled by min(1, clip_norm / norm) if clip_norm > 0; if count is 0, it receives 0. The op
// changes no tensor if the flag agree_not_finite is set or the gradient norm is not finite.
struct OptimizerUpdate final : OpDef {
  OptimizerRule rule;
  std::vector<UpdateRange> ranges;  // with by_parameter, each range is a whole parameter
  float clip_norm = 0;              // 0: no clipping
  float weight_decay = 0;
  // Copies of whole trainable parameters. Lowering fills the list if the backend writes copies in this op
  // (Backend::updates_copies).
  std::vector<UpdateCopy> copies;

  explicit OptimizerUpdate(OptimizerRule r = Sgd{}) : rule(std::move(r)) {}
  std::string_view kind() const override { return "optimizer"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// Names of the states that a rule keeps: "momentum", or "m" and "v".
std::vector<std::string> state_names(const OptimizerRule& rule);

// Whether the states of the rule are factors (see Factors) instead of one value for each element of a parameter.
bool is_factored(const OptimizerRule& rule);

// Whether the rule orthogonalizes the steps of matrices (UpdateRange::matrix).
bool is_orthogonal(const OptimizerRule& rule);

}  // namespace trainctl
