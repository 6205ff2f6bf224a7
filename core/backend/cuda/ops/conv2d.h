// What is known of a convolution before it is lowered.
#pragma once

#include <optional>

#include "core/backend/cuda/cudnn/plans.h"
#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// The plan that its recorded candidate takes; empty where nothing is recorded, where that is no plan, and for other
// ops. The context's layouts are not looked at.
std::optional<Plans::Wanted> recorded_plan(const LowerContext& context);

}  // namespace trainctl::cuda
