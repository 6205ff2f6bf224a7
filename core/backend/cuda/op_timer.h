// The time of an op as it was lowered, on random values.
#pragma once

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// Seconds of one run; in place where the op allows it, as the memory plan nearly always can.
double measure_op(const LowerContext& context, const Lowering& lowering);

}  // namespace trainctl::cuda
