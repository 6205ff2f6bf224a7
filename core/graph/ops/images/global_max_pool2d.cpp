// Shapes, placements and gradients of global max pooling.
#include "core/graph/ops/images/global_max_pool2d.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string GlobalMaxPool2d::attributes() const { return AttributeText().flag("training", training).text(); }

std::vector<TensorType> GlobalMaxPool2d::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 4, "global_max_pool2d: x is not a batch of images");
  const Shape y{x[0], x[3]};
  std::vector<TensorType> types{{y, inputs[0].dtype}};
  if (training) types.push_back({y, DType::int32});
  return types;
}

OutputPlacements GlobalMaxPool2d::placements(const PlacementQuery& query) const {
  return place_by({{"a..c"}, std::vector<std::string>(query.output_types.size(), "ac")}, query);
}

double GlobalMaxPool2d::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count());
}

void GlobalMaxPool2d::differentiate(const Op& op, Differentiator& differentiator) const {
  auto def = std::make_shared<GlobalMaxPool2dGrad>(differentiator.tensor(op.inputs[0]).type.shape);
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(def), {dy, op.outputs.at(1)}, op)[0]);
}

std::string GlobalMaxPool2dGrad::attributes() const { return AttributeText().value("input", to_string(input)).text(); }

std::vector<TensorType> GlobalMaxPool2dGrad::outputs(std::span<const TensorType> inputs) const {
  return {{input, inputs[0].dtype}};
}

OutputPlacements GlobalMaxPool2dGrad::placements(const PlacementQuery& query) const {
  return place_by({{"ac+S", "ac"}, {"a..c+S"}}, query);
}

}  // namespace trainctl
