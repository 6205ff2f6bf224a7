// Rules of layer normalisation.
#include "core/graph/ops/layer_norm.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText describe(const LayerNormAttributes& a) {
  AttributeText text;
  return text.value("epsilon", a.epsilon).flag("no_scale", !a.scale).flag("no_center", !a.center);
}

TensorType row_statistic(const TensorType& x) {
  const auto& sizes = x.shape.sizes();
  return {Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1)), DType::float32};
}

}  // namespace

std::string LayerNorm::attributes() const { return describe(a).text(); }

std::vector<TensorType> LayerNorm::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.rank() >= 2, "layer_norm: x has rows");
  return {inputs[0], row_statistic(inputs[0]), row_statistic(inputs[0])};
}

OutputPlacements LayerNorm::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]);
  PlacementRule rule{{row + "."}, {row + ".", row, row}};
  rule.inputs.resize(query.inputs.size(), ".");
  return place_by(rule, query);
}

double LayerNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 8.0 * static_cast<double>(inputs[0].shape.count());
}

void LayerNorm::differentiate(const Op& op, Differentiator& differentiator) const {
  std::size_t input = 1;
  std::vector<TensorId> operands{differentiator.gradient_of(op.outputs[0]), op.inputs[0]};
  std::vector<TensorId> results{no_tensor};
  if (a.scale) {
    operands.push_back(op.inputs[input]);
    results.push_back(gradient_if_wanted(op.inputs[input++], differentiator));
  }
  if (a.center) results.push_back(gradient_if_wanted(op.inputs[input], differentiator));
  operands.insert(operands.end(), {op.outputs[1], op.outputs[2]});
  const auto grad = std::make_shared<LayerNormGrad>(a, differentiator.accumulate());
  const auto outputs = differentiator.emit_into(grad, std::move(operands), std::move(results), op);
  if (differentiator.wants(op.inputs[0])) differentiator.contribute(op.inputs[0], outputs[0]);
}

std::string LayerNormGrad::attributes() const { return describe(a).flag("accumulate", accumulate).text(); }

std::vector<TensorType> LayerNormGrad::outputs(std::span<const TensorType> inputs) const {
  const TensorType channels{{inputs[1].shape.back()}, DType::float32};
  std::vector<TensorType> types{inputs[1]};
  if (a.scale) types.push_back(channels);
  if (a.center) types.push_back(channels);
  return types;
}

OutputPlacements LayerNormGrad::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]), dx = row + ".+S";
  const std::size_t sums = std::size_t{0} + a.scale + a.center;
  PlacementRule rule{{dx, row + "."}, {dx}};
  if (a.scale) rule.inputs.emplace_back(".");
  rule.inputs.insert(rule.inputs.end(), 2, row);
  rule.outputs.resize(1 + sums, ".+" + row + "S");
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 1, 1 + sums) : result;
}

double LayerNormGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 14.0 * static_cast<double>(inputs[1].shape.count());
}

}  // namespace trainctl
