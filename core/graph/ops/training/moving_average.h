// The moving average of parameters: evaluation may use it instead of the parameters, or layers of a teacher have it as
// their parameters.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// average = momentum * average + (1 - momentum) * parameter, computed after the optimizer's step. In step 0 the average
// is set to the parameter, as in Keras; with `has_initial_values` the average has values before, and step 0 is like the
// others. As with optimizers, the averages do not change if the flag agree_not_finite is set or the norm is not finite.
// Inputs: parameters (the first `count` elements are averaged), step (int64 scalar, from 0), agree flags, gradient
// norm. Outputs: the averages [count].
struct MovingAverage final : OpDef {
  float momentum = 0;
  std::int64_t count = 0;
  bool has_initial_values = false;

  MovingAverage(float m, std::int64_t c, bool before = false) : momentum(m), count(c), has_initial_values(before) {}
  std::string_view kind() const override { return "moving_average"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
