// Running statistics of batch normalisation: the sums of batch statistics, and the update of the moving statistics.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Adds a micro-batch's statistics, times the number n of its samples, to the sums that are reduced with the gradients:
// the sums divided by the reduced number of samples are the mean over samples, whatever these weigh. Inputs: any number
// of values [C] (means and variances of one layer or many), then n (float32 scalar, core/graph/ops/training/count.h).
// Outputs: n times each of the values (role reduced).
struct AccumulateStatistics final : OpDef {
  bool accumulate = false;  // add to what the outputs hold

  explicit AccumulateStatistics(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "accumulate_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// moving = momentum * moving + (1 - momentum) * sum / count, for each of a number of statistics. Inputs: the reduced
// sums [C], then the reduced number of samples and the agree flags. Outputs: the moving statistics [C], in the order of
// their sums. It changes nothing when the flag agree_not_finite is set, or where there were no samples.
struct UpdateStatistics final : OpDef {
  std::vector<float> momenta;  // one for each statistic

  explicit UpdateStatistics(std::vector<float> of_each) : momenta(std::move(of_each)) {}
  std::string_view kind() const override { return "update_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
