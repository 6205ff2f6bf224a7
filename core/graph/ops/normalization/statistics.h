// Running statistics of batch normalisation: the sums of batch statistics, and the update of the moving statistics.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Adds a batch's statistics, times the sum w of its sample weights, to the sums that are reduced with the gradients:
// the sums divided by the reduced count are the mean weighted by samples. Inputs: any number of values [C] (means and
// variances of one layer or many), then the weights float32 [N]. Outputs: w times each of the values (role reduced).
struct AccumulateStatistics final : OpDef {
  bool accumulate = false;  // add to what the outputs hold

  explicit AccumulateStatistics(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "accumulate_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// moving = momentum * moving + (1 - momentum) * sum / count, for each of a number of statistics. Inputs: the reduced
// sums [C], then count and agree flags. Outputs: the moving statistics [C], in the order of their sums. Like the
// optimizers it changes nothing when the flag agree_not_finite is set.
struct UpdateStatistics final : OpDef {
  std::vector<float> momenta;  // one for each statistic

  explicit UpdateStatistics(std::vector<float> of_each) : momenta(std::move(of_each)) {}
  std::string_view kind() const override { return "update_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
