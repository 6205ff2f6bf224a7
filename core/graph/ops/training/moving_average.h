// The moving average of the parameters, which evaluation takes in their place.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// average = momentum * average + (1 - momentum) * parameter, behind the optimizer's step; in step 0 the average is the
// parameter, as in Keras. Inputs: parameters, of which the first `count` are averaged, step (int64 scalar, from 0),
// agree flags, gradient norm. Outputs: the averages [count]. Like the
// optimizers it changes nothing when the flag agree_not_finite is set or the norm is not finite.
struct MovingAverage final : OpDef {
  float momentum = 0;
  std::int64_t count = 0;

  MovingAverage(float m, std::int64_t c) : momentum(m), count(c) {}
  std::string_view kind() const override { return "moving_average"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
