// Times lowered ops on random values, and chooses between lowerings by their times.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// Measures the seconds of one run. Outputs share the memory of inputs if the op can run in place, as in nearly all
// memory plans.
double measure_op(const LowerContext& context, const Lowering& lowering);

// Returns the index of the candidate that is recorded under the key. If none is recorded, returns the candidate with
// the smallest seconds(i), and records it. Returns 0 if timing is forbidden or no candidate runs. `what` names the
// computation in the log.
std::size_t choose(const LowerContext& context, const std::string& key, const std::string& what,
                   std::span<const std::string> candidates, const std::function<double(std::size_t)>& seconds);

}  // namespace trainctl::cuda
