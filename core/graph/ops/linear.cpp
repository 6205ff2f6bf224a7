// Rules of dense and convolution.
#include "core/graph/ops/linear.h"

#include "core/graph/graph.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"

namespace trainctl {
namespace {

double matrix_flops(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
}

// Two for each product of an output element with a window element; products with padding are counted.
double convolution_flops(const Shape& y, const Shape& kernel) {
  return 2.0 * static_cast<double>(y.count()) * static_cast<double>(kernel[0] * kernel[1] * kernel[2]);
}

void add_function(AttributeText& text, const ActivationFunction& function) {
  if (function.kind != ActivationKind::none) text.value("activation", to_string(function));
}

std::string convolution_attributes(const Window& window, std::int64_t groups, AttributeText rest) {
  AttributeText text;
  text.word(to_string(window));
  if (groups != 1) text.value("groups", groups);
  return text.word(rest.text()).text();
}

// Of an input's gradient: its output lies where what it is added to, its third input, does.
std::vector<InPlace> in_place_of(bool accumulate) {
  return accumulate ? std::vector<InPlace>{{2, 0}} : std::vector<InPlace>{};
}

// Weights first, so that their reduction can begin early; then the input's gradient.
template <class GradInput, class GradWeights>
void differentiate_linear(const Op& op, TensorId dy, GradInput grad_input, GradWeights grad_weights,
                          Differentiator& differentiator) {
  const bool bias = op.inputs.size() > 2;
  const bool wants_bias = bias && differentiator.wants(op.inputs[2]);
  if (differentiator.wants(op.inputs[1]) || wants_bias) {
    std::vector<TensorId> outputs{gradient_if_wanted(op.inputs[1], differentiator)};
    if (wants_bias) outputs.push_back(differentiator.parameter_gradient(op.inputs[2]));
    differentiator.emit_into(grad_weights(wants_bias), {op.inputs[0], dy}, outputs, op);
  }
  if (differentiator.wants(op.inputs[0])) {
    differentiator.contribute(op.inputs[0], differentiator.emit(grad_input(), {dy, op.inputs[1]}, op)[0]);
  }
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
  require(x.shape.rank() == 2 && kernel.rank() == 2 && x.shape[1] == kernel[0], "dense: x and kernel do not fit");
  require(inputs.size() == 2 || inputs[2].shape == Shape{kernel[1]}, "dense: the bias does not fit the kernel");
  return {{{x.shape[0], kernel[1]}, x.dtype}};
}

double Dense::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return matrix_flops(outputs[0].shape[0], inputs[0].shape[1], outputs[0].shape[1]);
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

std::vector<InPlace> DenseGradInput::in_place() const { return in_place_of(accumulate); }

std::vector<TensorType> DenseGradInput::outputs(std::span<const TensorType> inputs) const {
  require(!accumulate || function.kind == ActivationKind::none, "dense_grad_input: adds, or has an activation");
  return {{{inputs[0].shape[0], inputs[1].shape[0]}, inputs[0].dtype}};
}

double DenseGradInput::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return matrix_flops(outputs[0].shape[0], inputs[0].shape[1], outputs[0].shape[1]);
}

std::string DenseGradWeights::attributes() const {
  return AttributeText().flag("bias", bias).flag("accumulate", accumulate).text();
}

std::vector<TensorType> DenseGradWeights::outputs(std::span<const TensorType> inputs) const {
  const std::int64_t in = inputs[0].shape[1], out = inputs[1].shape[1];
  std::vector<TensorType> types{{{in, out}, DType::float32}};
  if (bias) types.push_back({{out}, DType::float32});
  return types;
}

double DenseGradWeights::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return matrix_flops(inputs[0].shape[1], inputs[0].shape[0], inputs[1].shape[1]);
}

std::string to_string(const Window& window) {
  const Window none;
  AttributeText text;
  text.word(format("{}x{}", window.size[0], window.size[1]));
  if (window.strides != none.strides) text.word(format("strides={}x{}", window.strides[0], window.strides[1]));
  if (window.dilation != none.dilation) text.word(format("dilation={}x{}", window.dilation[0], window.dilation[1]));
  if (window.padding_before != none.padding_before || window.padding_after != none.padding_after) {
    text.word(format("padding={},{},{},{}", window.padding_before[0], window.padding_before[1], window.padding_after[0],
                     window.padding_after[1]));
  }
  return text.text();
}

std::string Conv2d::attributes() const {
  AttributeText text;
  add_function(text, function);
  return convolution_attributes(window, groups, text);
}

std::vector<TensorType> Conv2d::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  const Shape& kernel = inputs[1].shape;
  require(x.rank() == 4 && kernel.rank() == 4 && x[3] == kernel[2] * groups && kernel[3] % groups == 0 &&
              kernel[0] == window.size[0] && kernel[1] == window.size[1],
          "conv2d: x, kernel and window do not fit");
  require(inputs.size() == 2 || inputs[2].shape == Shape{kernel[3]}, "conv2d: the bias does not fit the kernel");
  return {{{x[0], window.output(0, x[1]), window.output(1, x[2]), kernel[3]}, inputs[0].dtype}};
}

double Conv2d::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return convolution_flops(outputs[0].shape, inputs[1].shape);
}

void Conv2d::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiate_linear(
      op, gradient_before(function, op, differentiator),
      [&] { return std::make_shared<Conv2dGradInput>(window, groups, differentiator.tensor(op.inputs[0]).type.shape); },
      [&](bool bias) { return std::make_shared<Conv2dGradWeights>(window, groups, bias, differentiator.accumulate()); },
      differentiator);
}

std::string Conv2dGradInput::attributes() const {
  return convolution_attributes(window, groups, AttributeText().flag("accumulate", accumulate));
}

std::vector<InPlace> Conv2dGradInput::in_place() const { return in_place_of(accumulate); }

std::vector<TensorType> Conv2dGradInput::outputs(std::span<const TensorType> inputs) const {
  return {{input, inputs[0].dtype}};
}

double Conv2dGradInput::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return convolution_flops(inputs[0].shape, inputs[1].shape);
}

std::string Conv2dGradWeights::attributes() const {
  return convolution_attributes(window, groups, AttributeText().flag("bias", bias).flag("accumulate", accumulate));
}

std::vector<TensorType> Conv2dGradWeights::outputs(std::span<const TensorType> inputs) const {
  const std::int64_t in = inputs[0].shape[3], out = inputs[1].shape[3];
  std::vector<TensorType> types{{{window.size[0], window.size[1], in / groups, out}, DType::float32}};
  if (bias) types.push_back({{out}, DType::float32});
  return types;
}

double Conv2dGradWeights::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return convolution_flops(inputs[1].shape, outputs[0].shape);
}

}  // namespace trainctl
