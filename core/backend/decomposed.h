// Lowers an op as a sequence of other ops that compute the same.
#pragma once

#include <functional>
#include <vector>

#include "core/backend/op_context.h"

namespace trainctl {

// Lowers each of `sub_ops`, which together compute the op, by calling `lower`; their kernels run one after the other.
// The op's workspace holds the tensors between the sub-ops, in logical layouts, and one workspace that the sub-ops
// share. An input of the op that only one sub-op reads has the layout that this sub-op asks for; all other tensors have
// their logical layouts.
Lowering lower_decomposed(const OpContext& context, std::vector<SubOp> sub_ops,
                          const std::function<Lowering(const OpContext&)>& lower);

}  // namespace trainctl
