// Shapes, placements and gradients of layer normalisation.
#include "core/graph/ops/normalization/layer_norm.h"

#include <utility>

#include "core/graph/ops/fusion.h"
#include "core/graph/ops/normalization/norm_rules.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText described(const LayerNormAttributes& a) {
  AttributeText text;
  return describe(text, a).flag("not_centered", !a.centered).flag("residual", a.residual);
}

TensorType row_statistic(const TensorType& x) {
  const auto& sizes = x.shape.sizes();
  return {Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1)), DType::float32};
}

}  // namespace

std::string LayerNorm::attributes() const { return described(a).text(); }

std::vector<TensorType> LayerNorm::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.rank() >= 2, "layer_norm: x has fewer than two dimensions");
  std::vector<TensorType> types{inputs[0], row_statistic(inputs[0]), row_statistic(inputs[0])};
  if (a.residual) types.push_back(inputs[0]);
  return types;
}

OutputPlacements LayerNorm::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]);
  PlacementRule rule{{row + "."}, {row + ".", row, row}};
  if (a.residual) {
    rule.inputs.push_back(row + ".");
    rule.outputs.push_back(row + ".");
  }
  rule.inputs.resize(query.inputs.size(), ".");
  return place_by(rule, query);
}

double LayerNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return (a.residual ? 9.0 : 8.0) * static_cast<double>(inputs[0].shape.count());
}

std::vector<InPlace> LayerNorm::in_place() const {
  return a.residual ? std::vector<InPlace>{{0, 3}, {1, 3}} : std::vector<InPlace>{};
}

std::optional<Op> LayerNorm::joined_with(const Op& op, const Op& writer) const {
  const auto* sum = writer.get_if<Add>();
  if (sum == nullptr || sum->function.kind != ActivationKind::none || a.residual) return {};
  LayerNormAttributes attributes = a;
  attributes.residual = true;
  Op joined = op;
  joined.def = std::make_shared<LayerNorm>(attributes);
  joined.inputs = writer.inputs;
  joined.inputs.insert(joined.inputs.end(), op.inputs.begin() + 1, op.inputs.end());
  joined.outputs.push_back(writer.outputs[0]);
  return joined;
}

void LayerNorm::differentiate(const Op& op, Differentiator& differentiator) const {
  require(!a.residual, "a layer normalization is joined with a sum before its gradient is derived");
  differentiate_norm<LayerNormGrad>(a, op, differentiator);
}

std::string LayerNormGrad::attributes() const {
  return described(a).flag("accumulate", accumulate).flag("adds", adds).text();
}

std::vector<TensorType> LayerNormGrad::outputs(std::span<const TensorType> inputs) const {
  return norm_gradient_types(a, inputs[1]);
}

OutputPlacements LayerNormGrad::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]), dx = row + ".+S";
  const std::size_t sums = std::size_t{0} + a.scale + a.center;
  PlacementRule rule{{dx, row + "."}, {dx}};
  if (a.scale) rule.inputs.emplace_back(".");
  rule.inputs.insert(rule.inputs.end(), 2, row);
  if (adds) rule.inputs.push_back(dx);
  rule.outputs.resize(1 + sums, ".+" + row + "S");
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 1, 1 + sums) : result;
}

double LayerNormGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return (adds ? 15.0 : 14.0) * static_cast<double>(inputs[1].shape.count());
}

std::vector<InPlace> LayerNormGrad::in_place() const {
  return adds ? std::vector<InPlace>{{other(), 0}} : std::vector<InPlace>{};
}

std::optional<Op> LayerNormGrad::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  if (adds) return {};
  auto adding = std::make_shared<LayerNormGrad>(*this);
  adding->adds = true;
  return fused_with_sum(std::move(adding), op, reader, operand);
}

}  // namespace trainctl
