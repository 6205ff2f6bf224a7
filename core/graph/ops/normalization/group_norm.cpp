// Shapes, placements and gradients of group normalisation.
#include "core/graph/ops/normalization/group_norm.h"

#include "core/graph/ops/normalization/norm_rules.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText described(const GroupNormAttributes& a) {
  AttributeText text;
  return describe(text.value("groups", a.groups), a);
}

}  // namespace

std::string GroupNorm::attributes() const { return described(a).text(); }

std::vector<TensorType> GroupNorm::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() >= 2 && x.back() % a.groups == 0,
          "group_norm: the number of channels is not a multiple of the number of groups");
  const TensorType statistic{{x[0], a.groups}, DType::float32};
  return {inputs[0], statistic, statistic};
}

OutputPlacements GroupNorm::placements(const PlacementQuery& query) const {
  const std::string x = samples(query.input_types[0]);
  PlacementRule rule{{x}, {x, "a.", "a."}};
  rule.inputs.resize(query.inputs.size(), ".");
  return place_by(rule, query);
}

double GroupNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 8.0 * static_cast<double>(inputs[0].shape.count());
}

void GroupNorm::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiate_norm<GroupNormGrad>(a, op, differentiator);
}

std::string GroupNormGrad::attributes() const { return described(a).flag("accumulate", accumulate).text(); }

std::vector<TensorType> GroupNormGrad::outputs(std::span<const TensorType> inputs) const {
  return norm_gradient_types(a, inputs[1]);
}

OutputPlacements GroupNormGrad::placements(const PlacementQuery& query) const {
  const std::string x = samples(query.input_types[1]), dx = x + "+S";
  const std::size_t sums = std::size_t{0} + a.scale + a.center;
  PlacementRule rule{{dx, x}, {dx}};
  if (a.scale) rule.inputs.emplace_back(".");
  rule.inputs.insert(rule.inputs.end(), 2, "a.");
  rule.outputs.resize(1 + sums, ".+aS");
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 1, 1 + sums) : result;
}

double GroupNormGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 14.0 * static_cast<double>(inputs[1].shape.count());
}

}  // namespace trainctl
