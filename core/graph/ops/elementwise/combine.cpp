// Shapes, placements and gradients of elementwise products, extremes and multiples.
#include "core/graph/ops/elementwise/combine.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

std::vector<TensorType> like_inputs(std::string_view kind, std::span<const TensorType> inputs) {
  require(inputs.size() == 2 && inputs[0] == inputs[1],
          format("{}: the inputs are not two tensors of equal shape and dtype", std::string(kind)));
  return {inputs[0]};
}

// The shape of one value for each sample and channel of x.
Shape channels_of(const Shape& x) {
  Shape shape = x;
  for (std::int64_t axis = 1; axis + 1 < x.rank(); ++axis) shape[axis] = 1;
  return shape;
}

std::string text(Extreme which) { return which == Extreme::largest ? "largest" : "smallest"; }

}  // namespace

std::vector<TensorType> Multiply::outputs(std::span<const TensorType> inputs) const {
  return like_inputs(kind(), inputs);
}

OutputPlacements Multiply::placements(const PlacementQuery& query) const { return place_elementwise(query); }

void Multiply::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  for (const std::size_t i : {0u, 1u}) {
    if (!differentiator.needs_gradient(op.inputs[i])) continue;
    const auto gradient = differentiator.emit(std::make_shared<Multiply>(), {dy, op.inputs[1 - i]}, op);
    differentiator.contribute(op.inputs[i], gradient[0]);
  }
}

std::vector<TensorType> MultiplyChannels::outputs(std::span<const TensorType> inputs) const {
  require(inputs[1].shape == channels_of(inputs[0].shape) && inputs[0].dtype == inputs[1].dtype,
          "multiply_channels: the second input does not have one factor for each sample and channel");
  return {inputs[0]};
}

OutputPlacements MultiplyChannels::placements(const PlacementQuery& query) const {
  const std::string all = samples_and_channels(query.input_types[0]);
  return place_by({{all, all}, {all}}, query);
}

void MultiplyChannels::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  if (differentiator.needs_gradient(op.inputs[1])) {
    const auto gradient = differentiator.emit(std::make_shared<MultiplyChannelsGrad>(), {dy, op.inputs[0]}, op);
    differentiator.contribute(op.inputs[1], gradient[0]);
  }
  if (differentiator.needs_gradient(op.inputs[0])) {
    const auto gradient = differentiator.emit(std::make_shared<MultiplyChannels>(), {dy, op.inputs[1]}, op);
    differentiator.contribute(op.inputs[0], gradient[0]);
  }
}

std::vector<TensorType> MultiplyChannelsGrad::outputs(std::span<const TensorType> inputs) const {
  return {{channels_of(inputs[0].shape), inputs[0].dtype}};
}

OutputPlacements MultiplyChannelsGrad::placements(const PlacementQuery& query) const {
  const std::string all = samples_and_channels(query.input_types[0]);
  return place_by({{all, all}, {all}}, query);
}

std::string ScaleBy::attributes() const { return AttributeText().value("factor", factor).text(); }

OutputPlacements ScaleBy::placements(const PlacementQuery& query) const { return place_elementwise(query, {0}); }

void ScaleBy::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<ScaleBy>(factor), {dy}, op)[0]);
}

std::string Extremum::attributes() const { return text(which); }

std::vector<TensorType> Extremum::outputs(std::span<const TensorType> inputs) const {
  return like_inputs(kind(), inputs);
}

OutputPlacements Extremum::placements(const PlacementQuery& query) const { return place_elementwise(query); }

void Extremum::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto gradients =
      differentiator.emit(std::make_shared<ExtremumGrad>(which), {dy, op.inputs[0], op.inputs[1]}, op);
  for (const std::size_t i : {0u, 1u}) {
    if (differentiator.needs_gradient(op.inputs[i])) differentiator.contribute(op.inputs[i], gradients[i]);
  }
}

std::string ExtremumGrad::attributes() const { return text(which); }

std::vector<TensorType> ExtremumGrad::outputs(std::span<const TensorType> inputs) const {
  return {inputs[0], inputs[0]};
}

OutputPlacements ExtremumGrad::placements(const PlacementQuery& query) const {
  OutputPlacements result = place_elementwise(query, {0});
  if (result.problem.empty()) result.outputs.push_back(result.outputs[0]);
  return result;
}

}  // namespace trainctl
