// Lowering of a fused op as the sequence of ops that it replaces.
#pragma once

#include <functional>

#include "core/backend/op_context.h"

namespace trainctl {

// Lowers the op's parts() each by `lower`, to run one after the other on tensors in logical layouts. The op's workspace
// holds the tensors between the parts, and one workspace that the parts share.
Lowering lower_parts(const OpContext& context, const std::function<Lowering(const OpContext&)>& lower);

}  // namespace trainctl
