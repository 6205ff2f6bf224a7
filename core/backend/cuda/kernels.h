// Declares the CUDA lowering of every op kind; each family of ops has its own file in ops/.
#pragma once

#include "core/backend/cuda/lower.h"
#include "core/graph/op_kinds.h"

namespace trainctl::cuda {

#define TRAINCTL_DECLARE_KERNEL(kind) Lowering lower_##kind(const LowerContext& context);
TRAINCTL_KERNEL_OPS(TRAINCTL_DECLARE_KERNEL)
TRAINCTL_CUDA_OPS(TRAINCTL_DECLARE_KERNEL)
#undef TRAINCTL_DECLARE_KERNEL

}  // namespace trainctl::cuda
