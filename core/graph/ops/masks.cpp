// Shapes, placements and gradients of padding masks.
#include "core/graph/ops/masks.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

bool holds_tokens(const TensorType& type) { return type.dtype == DType::int32; }

// The shape of the mask of x [N, P..., C].
Shape without_channels(const Shape& x) {
  const std::vector<std::int64_t>& sizes = x.sizes();
  return Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1));
}

}  // namespace

std::string PositionMask::attributes() const { return AttributeText().value("padding", padding).text(); }

std::vector<TensorType> PositionMask::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(holds_tokens(inputs[0]) || x.rank() >= 2, "position_mask: x has no positions");
  return {{holds_tokens(inputs[0]) ? x : without_channels(x), DType::uint8}};
}

OutputPlacements PositionMask::placements(const PlacementQuery& query) const {
  const TensorType& x = query.input_types[0];
  if (holds_tokens(x)) return place_by({{every_dimension(x)}, {every_dimension(x)}}, query);
  return place_by({{rows(x) + "."}, {rows(x)}}, query);
}

std::string MergeMasks::attributes() const { return AttributeText().flag("all", all).text(); }

std::vector<TensorType> MergeMasks::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == 2 && inputs[0] == inputs[1], "merge_masks: the masks have different shapes");
  return {inputs[0]};
}

OutputPlacements MergeMasks::placements(const PlacementQuery& query) const {
  const std::string mask = every_dimension(query.input_types[0]);
  return place_by({{mask, mask}, {mask}}, query);
}

std::vector<TensorType> MaskPositions::outputs(std::span<const TensorType> inputs) const {
  require(inputs[1].shape == without_channels(inputs[0].shape), "mask_positions: the mask does not fit x");
  return {inputs[0]};
}

OutputPlacements MaskPositions::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]);
  return place_by({{x + "+S", rows(query.input_types[0])}, {x + "+S"}}, query);
}

void MaskPositions::differentiate(const Op& op, Differentiator& differentiator) const {
  if (!differentiator.needs_gradient(op.inputs[0])) return;
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto def = std::make_shared<MaskPositions>();
  differentiator.contribute(op.inputs[0], differentiator.emit(def, {dy, op.inputs[1]}, op)[0]);
}

std::vector<TensorType> MaskedMean::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 3 && inputs[1].shape == Shape{x[0], x[1]}, "masked_mean: the mask does not fit x [N, T, C]");
  return {{{x[0], x[2]}, inputs[0].dtype}};
}

OutputPlacements MaskedMean::placements(const PlacementQuery& query) const {
  return place_by({{"a.c+S", "a."}, {"ac+S"}}, query);
}

double MaskedMean::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count());
}

void MaskedMean::differentiate(const Op& op, Differentiator& differentiator) const {
  if (!differentiator.needs_gradient(op.inputs[0])) return;
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto def = std::make_shared<MaskedMeanGrad>();
  differentiator.contribute(op.inputs[0], differentiator.emit(def, {dy, op.inputs[1]}, op)[0]);
}

std::vector<TensorType> MaskedMeanGrad::outputs(std::span<const TensorType> inputs) const {
  const Shape &dy = inputs[0].shape, &mask = inputs[1].shape;
  return {{{dy[0], mask[1], dy[1]}, inputs[0].dtype}};
}

OutputPlacements MaskedMeanGrad::placements(const PlacementQuery& query) const {
  return place_by({{"ac+S", "a."}, {"a.c+S"}}, query);
}

std::string MaskWeights::attributes() const {
  AttributeText text;
  text.flag("masked", masked);
  if (ignored) text.value("ignored", *ignored);
  return text.text();
}

std::vector<TensorType> MaskWeights::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == 2u + (masked ? 1 : 0) + (ignored ? 1 : 0),
          "mask_weights: the inputs do not fit the attributes");
  const Shape &weights = inputs[0].shape, &positions = inputs.size() > 2 ? inputs[2].shape : weights;
  require((inputs.size() == 2 || inputs.back().shape == positions) &&
              (weights == positions || weights == Shape{positions[0]}),
          "mask_weights: weights, mask and targets do not fit");
  return {{positions, DType::float32}, {positions, DType::float32}};
}

OutputPlacements MaskWeights::placements(const PlacementQuery& query) const {
  const std::string positions = every_dimension(query.input_types[query.inputs.size() > 2 ? 2 : 0]);
  const auto weights = static_cast<std::size_t>(query.input_types[0].shape.rank());
  PlacementRule rule{{positions.substr(0, weights), positions.substr(0, 1)}, {positions, positions}};
  rule.inputs.resize(query.inputs.size(), positions);
  return place_by(rule, query);
}

}  // namespace trainctl
