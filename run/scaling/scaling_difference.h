// Finds the first difference between two runs of verify-scaling: its step, op, tensor and size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/tensor/difference.h"

namespace trainctl {

class ScalingRuns;
struct ScaledRun;

struct ScalingDifference {
  int ranks = 1, other_ranks = 1;
  std::int64_t step = 0;              // number of the step, from 1
  std::string phase;                  // forward, backward, reduction or update; "" if it was not found
  std::string op, tensor;             // the tensor, and the op that wrote it
  std::vector<std::int64_t> samples;  // indices of the samples that differ; empty if the tensor has no samples
  std::size_t compared = 0;           // number of samples that were compared
  Difference difference;
  std::string note;  // further explanation

  std::string text() const;
};

// Returns the difference as an object.
Json to_json(const ScalingDifference& difference);

// Repeats both runs up to the step after which they differ, traces that step, and looks for the first tensor that
// differs: among the tensors that ops wrote for the same samples, then among the reduced gradients, then among the
// weights and the optimizer's state.
ScalingDifference find_difference(ScalingRuns& runs, const ScaledRun& a, const ScaledRun& b, std::int64_t step);

}  // namespace trainctl
