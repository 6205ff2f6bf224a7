// Lowering of an op as the ops that it is made of.
#pragma once

#include <functional>

#include "core/backend/op_context.h"

namespace trainctl {

// Runs the op's parts() one after the other, each as `lower` lowers it, on tensors in their logical layouts; what lies
// between them, and the workspace of each, is in the op's workspace.
Lowering lower_parts(const OpContext& context, const std::function<Lowering(const OpContext&)>& lower);

}  // namespace trainctl
