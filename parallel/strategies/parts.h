// Parts of whole things where the ranks along the tensor axis share a layer: of parameters, and of what ops do.
#pragma once

#include <cstdint>
#include <memory>

#include "core/graph/graph.h"

namespace trainctl {

// The part of rank `place` of a parameter or running statistic of which `ranks` ranks have equal parts along the
// dimension.
Tensor part_along(Tensor whole, std::int64_t dimension, int ranks, int place);

// What the op does on the part of rank `place` of its activations, which are split along the last dimension; `x` is the
// shape of its first input, whole. Null where there is no such op.
std::shared_ptr<const OpDef> on_part(const Op& op, const Shape& x, int ranks, int place);

}  // namespace trainctl
