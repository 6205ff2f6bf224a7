// Shapes, placements and gradients of dense layers.
#include "core/graph/ops/dense.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

double matrix_flops(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
}

}  // namespace

std::string Dense::attributes() const {
  AttributeText text;
  add_function(text, function);
  return text.text();
}

std::vector<TensorType> Dense::outputs(std::span<const TensorType> inputs) const {
  const TensorType& x = inputs[0];
  const Shape& kernel = inputs[1].shape;
  require(x.shape.rank() >= 2 && kernel.rank() == 2 && x.shape.back() == kernel[0], "dense: x and kernel do not fit");
  require(inputs.size() == 2 || inputs[2].shape == Shape{kernel[1]}, "dense: the bias does not fit the kernel");
  return {{x.shape.with_back(kernel[1]), x.dtype}};
}

OutputPlacements Dense::placements(const PlacementQuery& query) const {
  const bool linear = function.kind == ActivationKind::none;  // a nonlinear function of partial sums is not partial
  const std::string samples = rows(query.input_types[0]);
  PlacementRule rule;
  if (linear) {
    rule = {{samples + "i+S", "io", "o+iS"}, {samples + "o+iS"}};
  } else {
    rule = {{samples + ".", ".o", "o"}, {samples + "o"}};
  }
  rule.inputs.resize(query.inputs.size());  // with or without a bias
  return place_by(rule, query);
}

double Dense::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return matrix_flops(outputs[0].shape.rows(), inputs[0].shape.back(), outputs[0].shape.back());
}

std::optional<Op> Dense::fused_with(const Op& op, const Op& reader, std::size_t) const {
  return fused_with_activation(*this, op, reader);
}

void Dense::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiate_linear(
      op, gradient_before(function, op, differentiator), [] { return std::make_shared<DenseGradInput>(); },
      [&](bool bias) { return std::make_shared<DenseGradWeights>(bias, differentiator.accumulate()); }, differentiator);
}

std::string DenseGradInput::attributes() const {
  AttributeText text;
  add_function(text, function);
  return text.flag("accumulate", accumulate).text();
}

// Fuses with the gradient of the activation that computed the dense layer's input, or with the sum that adds another
// gradient of that input.
std::optional<Op> DenseGradInput::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  if (accumulate || function.kind != ActivationKind::none) return {};
  const auto* gradient = reader.get_if<ActivationGrad>();
  if (gradient == nullptr) {
    return fused_with_sum(std::make_shared<DenseGradInput>(ActivationFunction{}, true), op, reader, operand);
  }
  if (!gradient_uses_output(gradient->function.kind) || operand != 0) return {};
  Op fused = fused_op(op, std::make_shared<DenseGradInput>(gradient->function), reader);
  fused.inputs.push_back(reader.inputs[1]);
  return fused;
}

std::vector<InPlace> DenseGradInput::in_place() const { return in_place_of(accumulate); }

// The op is linear in dy and in the kernel. Let g be the gradient with respect to dx. The gradient with respect to dy
// is the product of g and the kernel; the gradient with respect to the kernel is the kernel gradient of a dense layer
// with the input g.
void DenseGradInput::differentiate(const Op& op, Differentiator& differentiator) const {
  require(function.kind == ActivationKind::none, "dense_grad_input: no gradient if it is fused with an activation's");
  const TensorId gradient = differentiator.gradient_of(op.outputs[0]);
  if (differentiator.needs_gradient(op.inputs[1])) {
    differentiator.emit_into(std::make_shared<DenseGradWeights>(false, differentiator.accumulate()),
                             {gradient, op.inputs[0]}, {differentiator.parameter_gradient(op.inputs[1])}, op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) {
    differentiator.contribute(op.inputs[0],
                              differentiator.emit(std::make_shared<Dense>(), {gradient, op.inputs[1]}, op)[0]);
  }
  if (accumulate && differentiator.needs_gradient(op.inputs[2])) differentiator.contribute(op.inputs[2], gradient);
}

std::vector<TensorType> DenseGradInput::outputs(std::span<const TensorType> inputs) const {
  require(!accumulate || function.kind == ActivationKind::none, "dense_grad_input: accumulates and has an activation");
  return {{inputs[0].shape.with_back(inputs[1].shape[0]), inputs[0].dtype}};
}

OutputPlacements DenseGradInput::placements(const PlacementQuery& query) const {
  const std::string samples = rows(query.input_types[0]), dx = samples + "i+oS";
  PlacementRule rule{{samples + "o+S", "io"}, {dx}};
  if (accumulate) rule.inputs.push_back(dx);
  if (function.kind != ActivationKind::none) rule.inputs.push_back(samples + "i");
  return place_by(rule, query);
}

double DenseGradInput::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return matrix_flops(outputs[0].shape.rows(), inputs[0].shape.back(), outputs[0].shape.back());
}

std::string DenseGradWeights::attributes() const {
  return AttributeText().flag("bias", bias).flag("accumulate", accumulate).text();
}

std::vector<TensorType> DenseGradWeights::outputs(std::span<const TensorType> inputs) const {
  const std::int64_t in = inputs[0].shape.back(), out = inputs[1].shape.back();
  std::vector<TensorType> types{{{in, out}, DType::float32}};
  if (bias) types.push_back({{out}, DType::float32});
  return types;
}

OutputPlacements DenseGradWeights::placements(const PlacementQuery& query) const {
  const std::string samples = rows(query.input_types[0]);
  PlacementRule rule{{samples + "i", samples + "o+S"}, {"io+" + samples + "S"}};
  if (bias) rule.outputs.push_back("o+" + samples + "S");
  return kept_if(accumulate, place_by(rule, query), query);
}

double DenseGradWeights::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return matrix_flops(inputs[0].shape.back(), inputs[0].shape.rows(), inputs[1].shape.back());
}

}  // namespace trainctl
