// Views and placements along one dimension.
#include "core/graph/ops/along_axis.h"

namespace trainctl {

AxisView view_along(const Shape& shape, int axis) {
  AxisView view{.count = shape[axis]};
  for (std::int64_t d = 0; d < axis; ++d) view.outer *= shape[d];
  for (std::int64_t d = axis + 1; d < shape.rank(); ++d) view.inner *= shape[d];
  return view;
}

OutputPlacements place_along(int axis, const PlacementQuery& query) {
  std::string x = every_dimension(query.input_types[0]);
  x[static_cast<std::size_t>(axis)] = '.';
  return place_by({{x + "+S"}, {x + "+S"}}, query);
}

}  // namespace trainctl
