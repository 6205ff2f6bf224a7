// Shapes, placements and gradients of activations and sums.
#include "core/graph/ops/elementwise/activations.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string_view name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::none:
      return "none";
    case ActivationKind::relu:
      return "relu";
    case ActivationKind::relu6:
      return "relu6";
    case ActivationKind::leaky_relu:
      return "leaky_relu";
    case ActivationKind::elu:
      return "elu";
    case ActivationKind::selu:
      return "selu";
    case ActivationKind::gelu:
      return "gelu";
    case ActivationKind::gelu_tanh:
      return "gelu_tanh";
    case ActivationKind::silu:
      return "silu";
    case ActivationKind::mish:
      return "mish";
    case ActivationKind::hard_swish:
      return "hard_swish";
    case ActivationKind::tanh:
      return "tanh";
    case ActivationKind::sigmoid:
      return "sigmoid";
    case ActivationKind::hard_sigmoid:
      return "hard_sigmoid";
    case ActivationKind::softplus:
      return "softplus";
  }
  return "?";
}

std::string to_string(const ActivationFunction& function) {
  const std::string name(name_of(function.kind));
  const bool has_slope = function.kind == ActivationKind::leaky_relu || function.kind == ActivationKind::elu;
  return has_slope ? format("{}({})", name, function.slope) : name;
}

TensorId gradient_before(const ActivationFunction& function, const Op& op, Differentiator& differentiator) {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  if (function.kind == ActivationKind::none) return dy;
  require(can_be_fused(function.kind), to_string(function) + " cannot be fused");
  return differentiator.emit(std::make_shared<ActivationGrad>(function), {dy, op.outputs[0]}, op)[0];
}

std::string Activation::attributes() const { return to_string(function); }

std::vector<TensorType> Activation::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements Activation::placements(const PlacementQuery& query) const { return place_elementwise(query); }

double Activation::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  const auto count = static_cast<double>(outputs[0].shape.count());
  switch (function.kind) {
    case ActivationKind::none:
    case ActivationKind::relu:
    case ActivationKind::relu6:
    case ActivationKind::leaky_relu:
      return count;
    case ActivationKind::hard_sigmoid:
    case ActivationKind::hard_swish:
      return 3 * count;
    default:  // transcendental functions are counted as ten, a usual convention
      return 10 * count;
  }
}

void Activation::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  if (function.kind == ActivationKind::none) return differentiator.contribute(op.inputs[0], dy);
  const TensorId saved = gradient_uses_output(function.kind) ? op.outputs[0] : op.inputs[0];
  const auto dx = differentiator.emit(std::make_shared<ActivationGrad>(function), {dy, saved}, op);
  differentiator.contribute(op.inputs[0], dx[0]);
}

std::string ActivationGrad::attributes() const { return to_string(function); }

std::vector<TensorType> ActivationGrad::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements ActivationGrad::placements(const PlacementQuery& query) const { return place_elementwise(query, {0}); }

std::string Add::attributes() const {
  return function.kind == ActivationKind::none ? "" : "activation=" + to_string(function);
}

std::vector<TensorType> Add::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == 2 && inputs[0] == inputs[1], "add: the inputs are not two tensors of equal shape and dtype");
  return {inputs[0]};
}

OutputPlacements Add::placements(const PlacementQuery& query) const {
  if (query.inputs[0] != query.inputs[1]) {
    return {{}, format("{} and {} tensors are added", to_string(query.inputs[0]), to_string(query.inputs[1]))};
  }
  if (function.kind != ActivationKind::none) return place_elementwise(query);
  return place_elementwise(query, {0, 1});
}

std::optional<Op> Add::fused_with(const Op& op, const Op& reader, std::size_t) const {
  return fused_with_activation(*this, op, reader);
}

void Add::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId sum = gradient_before(function, op, differentiator);
  for (TensorId input : op.inputs) {
    if (differentiator.needs_gradient(input)) differentiator.contribute(input, sum);
  }
}

}  // namespace trainctl
