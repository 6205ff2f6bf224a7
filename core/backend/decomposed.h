// Lowering of an op as a sequence of other ops that compute the same.
#pragma once

#include <functional>
#include <vector>

#include "core/backend/op_context.h"

namespace trainctl {

// Lowers each of `parts`, which together compute the op, by `lower`, to run one after the other. The op's workspace
// holds the tensors between the parts, in logical layouts, and one workspace that the parts share. An input of the op
// that one part alone reads lies in the layout which that part asks for; all other tensors lie in their logical
// layouts.
Lowering lower_decomposed(const OpContext& context, std::vector<SubOp> parts,
                          const std::function<Lowering(const OpContext&)>& lower);

}  // namespace trainctl
