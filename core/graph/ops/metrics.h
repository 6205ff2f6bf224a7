// Metrics: sums over samples, of the same inputs as the losses' (core/graph/ops/losses.h).
#pragma once

#include "core/graph/op.h"

namespace trainctl {

enum class MetricKind {
  sparse_categorical_accuracy,  // argmax (first of equals) equals the target
  categorical_accuracy,         // argmax of both
  binary_accuracy,              // mean over K of (logit > 0) == (target > 0.5)
  top_k_categorical_accuracy,   // targets int32 [N] or float32 [N, K]: fewer than k predictions are greater than the
                                // target's
  mean_absolute_error,          // mean over K
};

std::string_view name_of(MetricKind kind);

// Inputs: predictions, targets, weights. Outputs: the weighted sum over samples, float32 scalar (role reduced).
struct Metric final : OpDef {
  MetricKind metric;
  std::int64_t k = 1;  // top_k only
  bool accumulate = false;

  Metric(MetricKind m, std::int64_t top, bool a) : metric(m), k(top), accumulate(a) {}
  std::string_view kind() const override { return "metric"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
