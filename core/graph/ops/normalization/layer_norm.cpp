// Shapes, placements and gradients of layer normalisation.
#include "core/graph/ops/normalization/layer_norm.h"

#include "core/graph/ops/normalization/norm_rules.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText described(const LayerNormAttributes& a) {
  AttributeText text;
  return describe(text, a).flag("not_centered", !a.centered);
}

TensorType row_statistic(const TensorType& x) {
  const auto& sizes = x.shape.sizes();
  return {Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1)), DType::float32};
}

}  // namespace

std::string LayerNorm::attributes() const { return described(a).text(); }

std::vector<TensorType> LayerNorm::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.rank() >= 2, "layer_norm: x has fewer than two dimensions");
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
  differentiate_norm<LayerNormGrad>(a, op, differentiator);
}

std::string LayerNormGrad::attributes() const { return described(a).flag("accumulate", accumulate).text(); }

std::vector<TensorType> LayerNormGrad::outputs(std::span<const TensorType> inputs) const {
  return norm_gradient_types(a, inputs[1]);
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
