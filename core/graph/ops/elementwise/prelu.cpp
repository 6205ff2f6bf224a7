// Shapes, placements and gradients of the parametric ReLU.
#include "core/graph/ops/elementwise/prelu.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// The shape of alpha for x.
Shape alpha_shape(const Shape& x, bool shared) {
  Shape alpha = x.without_front();
  for (std::int64_t k = 0; shared && k + 1 < alpha.rank(); ++k) alpha[k] = 1;
  return alpha;
}

// The names of alpha's dimensions if the names of x's dimensions are `x` (from every_dimension()).
std::string alpha_dimensions(const std::string& x, bool shared) {
  std::string alpha = x.substr(1);
  if (shared) std::fill(alpha.begin(), alpha.end() - 1, '.');
  return alpha;
}

}  // namespace

std::string PRelu::attributes() const { return AttributeText().flag("shared", shared).text(); }

std::vector<TensorType> PRelu::outputs(std::span<const TensorType> inputs) const {
  require(inputs[1].shape == alpha_shape(inputs[0].shape, shared), "prelu: alpha does not fit x");
  return {inputs[0]};
}

OutputPlacements PRelu::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]);
  return place_by({{x, alpha_dimensions(x, shared)}, {x}}, query);
}

void PRelu::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto grad = std::make_shared<PReluGrad>(shared, differentiator.accumulate());
  const auto outputs =
      differentiator.emit_into(grad, {dy, op.inputs[0], op.inputs[1]},
                               {no_tensor, parameter_gradient_or_none(op.inputs[1], differentiator)}, op);
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], outputs[0]);
}

std::string PReluGrad::attributes() const {
  return AttributeText().flag("shared", shared).flag("accumulate", accumulate).text();
}

std::vector<TensorType> PReluGrad::outputs(std::span<const TensorType> inputs) const {
  require(inputs[2].shape == alpha_shape(inputs[1].shape, shared), "prelu_grad: alpha does not fit x");
  return {inputs[1], inputs[2]};
}

OutputPlacements PReluGrad::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[1]), alpha = alpha_dimensions(x, shared);
  // dalpha is a sum over all dimensions of x that alpha does not have.
  const std::string sums = shared ? x.substr(0, x.size() - 1) : x.substr(0, 1);
  OutputPlacements result = place_by({{x + "+S", x, alpha}, {x + "+S", alpha + "+" + sums + "S"}}, query);
  return accumulate ? kept(std::move(result), query, 1, 2) : result;
}

double PReluGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 3.0 * static_cast<double>(inputs[1].shape.count());
}

}  // namespace trainctl
