// Finds the recorded plan of a convolution, so that it can be made before the op is lowered.
#pragma once

#include <optional>

#include "core/backend/cuda/cudnn/plans.h"
#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// The plan of the convolution's recorded candidate; empty if no candidate is recorded, if the record is not a plan, and
// for other ops. Does not read the context's layouts.
std::optional<Plans::Wanted> recorded_plan(const LowerContext& context);

}  // namespace trainctl::cuda
