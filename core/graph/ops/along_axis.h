// What ops that work along one dimension of a tensor have in common.
#pragma once

#include <cstdint>

#include "core/graph/placement_rules.h"

namespace trainctl {

// A tensor as [outer, count, inner], of which `count` is the size of the dimension `axis`.
struct AxisView {
  std::int64_t outer = 1, count = 1, inner = 1;
};
AxisView view_along(const Shape& shape, int axis);

// The placement of y, like x, of an op that is linear in its only input x and needs the whole dimension `axis`.
OutputPlacements place_along(int axis, const PlacementQuery& query);

}  // namespace trainctl
