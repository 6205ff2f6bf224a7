// Timing of a lowered op on random values, and choices between lowerings.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// Seconds of one run. Outputs lie in place where the op allows that, as in nearly all memory plans.
double measure_op(const LowerContext& context, const Lowering& lowering);

// The index of the candidate that is recorded under the key, else of the candidate with the least seconds(i), which is
// recorded. 0 where timing is forbidden or no candidate runs. `what` names the computation in the log.
std::size_t choose(const LowerContext& context, const std::string& key, const std::string& what,
                   std::span<const std::string> candidates, const std::function<double(std::size_t)>& seconds);

}  // namespace trainctl::cuda
