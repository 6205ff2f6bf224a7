// Shapes, placements and gradients of dense layers.
#include "core/graph/ops/dense.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// The number of the kernel's first dimensions whose product is `in`; 0 if there are none.
std::int64_t input_dimensions(const Shape& kernel, std::int64_t in) {
  std::int64_t product = 1;
  for (std::int64_t k = 0; k + 1 < kernel.rank(); ++k) {
    product *= kernel[k];
    if (product == in) return k + 1;
  }
  return 0;
}

// The names of a kernel's dimensions for a placement rule: of the dimensions of either side, the first one can be
// split. With `in` 0 or a size that does not fit, none can be split.
std::string kernel_letters(const Shape& kernel, std::int64_t in) {
  if (kernel.rank() == 2) return "io";
  const std::int64_t inputs = input_dimensions(kernel, in);
  std::string letters(static_cast<std::size_t>(kernel.rank()), '.');
  if (inputs == 0) return letters;
  letters[0] = 'i';
  letters[static_cast<std::size_t>(inputs)] = 'o';
  return letters;
}

// Whether the shard of a kernel fits the size of one side of a product; the placements of a kernel of two dimensions
// tell this by themselves.
bool in_fits(const Shape& kernel, std::int64_t in) { return kernel.rank() == 2 || input_dimensions(kernel, in) > 0; }

const OutputPlacements unfit{{}, "the shards of the kernel do not fit those of the values"};

// The shapes of kernel and bias for a gradient of the weights; empty for kernels of two dimensions.
std::optional<std::pair<Shape, Shape>> shapes_of(const Op& op, bool bias, const Differentiator& differentiator) {
  const Shape& kernel = differentiator.tensor(op.inputs[1]).type.shape;
  if (kernel.rank() == 2) return {};
  return std::pair(kernel, bias ? differentiator.tensor(op.inputs[2]).type.shape : Shape{});
}

// The names of a bias' dimensions.
std::string bias_letters(const Shape& bias) {
  return "o" + std::string(static_cast<std::size_t>(bias.rank()) - 1, '.');
}

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
  require(x.shape.rank() >= 2 && input_dimensions(inputs[1].shape, x.shape.back()) > 0,
          "dense: x and kernel do not fit");
  const Shape kernel = kernel_of_inputs(inputs[1].shape, x.shape.back());
  require(inputs.size() == 2 || inputs[2].shape.count() == kernel[1], "dense: the bias does not fit the kernel");
  return {{x.shape.with_back(kernel[1]), x.dtype}};
}

OutputPlacements Dense::placements(const PlacementQuery& query) const {
  const bool linear = function.kind == ActivationKind::none;  // a nonlinear function of partial sums is not partial
  const std::string samples = rows(query.input_types[0]);
  const std::int64_t in = query.input_types[0].shape.back();
  if (!in_fits(query.input_types[1].shape, in)) return unfit;
  std::string kernel = kernel_letters(query.input_types[1].shape, in);
  PlacementRule rule;
  if (linear) {
    rule = {{samples + "i+S", kernel, "o+iS"}, {samples + "o+iS"}};
  } else {
    std::replace(kernel.begin(), kernel.end(), 'i', '.');
    rule = {{samples + ".", kernel, "o"}, {samples + "o"}};
  }
  rule.inputs.resize(query.inputs.size());  // with or without a bias
  if (query.inputs.size() > 2) rule.inputs[2].replace(0, 1, bias_letters(query.input_types[2].shape));
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
      [&](bool bias) {
        auto gradient = std::make_shared<DenseGradWeights>(bias, differentiator.accumulate());
        gradient->shapes = shapes_of(op, bias, differentiator);
        return gradient;
      },
      differentiator);
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
    auto weights = std::make_shared<DenseGradWeights>(false, differentiator.accumulate());
    weights->shapes = shapes_of(op, false, differentiator);
    differentiator.emit_into(std::move(weights), {gradient, op.inputs[0]},
                             {differentiator.parameter_gradient(op.inputs[1])}, op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) {
    differentiator.contribute(op.inputs[0],
                              differentiator.emit(std::make_shared<Dense>(), {gradient, op.inputs[1]}, op)[0]);
  }
  if (accumulate && differentiator.needs_gradient(op.inputs[2])) differentiator.contribute(op.inputs[2], gradient);
}

std::vector<TensorType> DenseGradInput::outputs(std::span<const TensorType> inputs) const {
  require(!accumulate || function.kind == ActivationKind::none, "dense_grad_input: accumulates and has an activation");
  const std::int64_t in = kernel_of_outputs(inputs[1].shape, inputs[0].shape.back())[0];
  return {{inputs[0].shape.with_back(in), inputs[0].dtype}};
}

OutputPlacements DenseGradInput::placements(const PlacementQuery& query) const {
  const std::string samples = rows(query.input_types[0]), dx = samples + "i+oS";
  const TensorType &dy = query.input_types[0], &kernel = query.input_types[1];
  const std::int64_t in = kernel_of_outputs(kernel.shape, dy.shape.back())[0];
  if (!in_fits(kernel.shape, in)) return unfit;
  PlacementRule rule{{samples + "o+S", kernel_letters(kernel.shape, in)}, {dx}};
  if (accumulate) rule.inputs.push_back(dx);
  if (function.kind != ActivationKind::none) rule.inputs.push_back(samples + "i");
  return place_by(rule, query);
}

double DenseGradInput::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return matrix_flops(outputs[0].shape.rows(), inputs[0].shape.back(), outputs[0].shape.back());
}

std::string DenseGradWeights::attributes() const {
  AttributeText text;
  text.flag("bias", bias).flag("accumulate", accumulate);
  if (shapes) text.value("kernel", to_string(shapes->first));
  return text.text();
}

std::vector<TensorType> DenseGradWeights::outputs(std::span<const TensorType> inputs) const {
  const std::int64_t in = inputs[0].shape.back(), out = inputs[1].shape.back();
  std::vector<TensorType> types{{shapes ? shapes->first : Shape{in, out}, DType::float32}};
  if (bias) types.push_back({shapes ? shapes->second : Shape{out}, DType::float32});
  return types;
}

OutputPlacements DenseGradWeights::placements(const PlacementQuery& query) const {
  const std::string samples = rows(query.input_types[0]);
  const Shape& kernel = query.output_types[0].shape;
  const std::int64_t in = query.input_types[0].shape.back();
  if (!in_fits(kernel, in)) return unfit;
  const std::string letters = kernel_letters(kernel, in);
  PlacementRule rule{{samples + "i", samples + "o+S"}, {letters + "+" + samples + "S"}};
  if (bias) rule.outputs.push_back(bias_letters(query.output_types[1].shape) + "+" + samples + "S");
  return kept_if(accumulate, place_by(rule, query), query);
}

double DenseGradWeights::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return matrix_flops(inputs[0].shape.back(), inputs[0].shape.rows(), inputs[1].shape.back());
}

}  // namespace trainctl
