// The time of an op as it was lowered, on random values, and choices by it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// Seconds of one run; in place where the op allows it, as the memory plan nearly always can.
double measure_op(const LowerContext& context, const Lowering& lowering);

// Which of several candidates: the one that is recorded under the key, else the one of which seconds(i) is the least,
// which is recorded. The first where nothing may be timed, or none can run. `what` names in the log what is timed.
std::size_t choose(const LowerContext& context, const std::string& key, const std::string& what,
                   std::span<const std::string> candidates, const std::function<double(std::size_t)>& seconds);

}  // namespace trainctl::cuda
