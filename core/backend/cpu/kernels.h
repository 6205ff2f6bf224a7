// The lowerings of all op kinds. Each family of ops has a file in core/backend/cpu/ops.
#pragma once

#include "core/backend/cpu/lower.h"
#include "core/graph/op_kinds.h"

namespace trainctl::cpu {

#define TRAINCTL_DECLARE_KERNEL(kind) Lowering lower_##kind(const LowerContext& context);
TRAINCTL_KERNEL_OPS(TRAINCTL_DECLARE_KERNEL)
#undef TRAINCTL_DECLARE_KERNEL

}  // namespace trainctl::cpu
