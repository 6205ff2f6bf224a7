// Where two runs of verify-scaling differ first: step, op, tensor, and by how much.
#pragma once

#include <string>
#include <vector>

#include "cmd/scaling/scaling_runs.h"
#include "core/base/json_fwd.h"
#include "core/tensor/difference.h"

namespace trainctl {

struct ScalingDifference {
  int ranks = 1, other_ranks = 1;
  std::int64_t step = 0;              // from 1
  std::string phase;                  // forward, backward, reduction or update; "" where it was not found
  std::string op, tensor;             // the tensor, and what wrote it
  std::vector<std::int64_t> samples;  // of the data set, whose values differ; empty where the tensor is none of samples
  std::size_t compared = 0;           // samples that were compared
  Difference difference;
  std::string note;  // what more there is to say

  std::string text() const;
};

Json to_json(const ScalingDifference& difference);

// Repeats both runs up to the step behind which they differ, traces that step, and looks for the first tensor that
// differs: what ops wrote for the same samples, then reduced gradients, then weights and the optimizer's state.
ScalingDifference find_difference(ScalingRuns& runs, const ScaledRun& a, const ScaledRun& b, std::int64_t step);

}  // namespace trainctl
