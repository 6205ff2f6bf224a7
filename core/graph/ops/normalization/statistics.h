// Running statistics of batch normalisation: sums of the batch statistics, and the update of the moving statistics.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Adds the statistics of a micro-batch, times its number of samples n, to sums that are reduced together with the
// gradients. The sums divided by the reduced number of samples are the means over all samples, regardless of sample
// weights. Inputs: any number of values [C] (means and variances of one layer or many), then n (float32 scalar,
// core/graph/ops/training/count.h). Outputs: n times each of the values (role reduced).
struct AccumulateStatistics final : OpDef {
  bool accumulate = false;  // add to the outputs instead of overwriting them

  explicit AccumulateStatistics(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "accumulate_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// moving = momentum * moving + (1 - momentum) * sum / count, for each of several statistics. Inputs: the reduced sums
// [C], then the reduced number of samples, the agree flags and the gradient norm. Outputs: the moving statistics [C],
// in the order of their sums. As with optimizers, the statistics keep their values if the flag agree_not_finite is set
// or the norm is not finite, and also if there were no samples.
struct UpdateStatistics final : OpDef {
  std::vector<float> momenta;  // one for each statistic

  explicit UpdateStatistics(std::vector<float> of_each) : momenta(std::move(of_each)) {}
  std::string_view kind() const override { return "update_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
