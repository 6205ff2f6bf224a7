// Shapes and placements of OneHot.
#include "core/graph/ops/one_hot.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string OneHot::attributes() const { return AttributeText().value("classes", classes).text(); }

std::vector<TensorType> OneHot::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].dtype == DType::int32, "one_hot: the input has no class numbers");
  return {{inputs[0].shape.with_appended(classes), DType::float32}};
}

OutputPlacements OneHot::placements(const PlacementQuery& query) const {
  const std::string numbers = every_dimension(query.input_types[0]);
  return place_by({{numbers}, {numbers + "."}}, query);
}

}  // namespace trainctl
