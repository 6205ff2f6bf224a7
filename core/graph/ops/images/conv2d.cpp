// Shapes, placements and gradients of convolutions.
#include "core/graph/ops/images/conv2d.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// Counts two operations for each product of an input element and a kernel element, including products with padding.
double convolution_flops(const Shape& y, const Shape& kernel) {
  return 2.0 * static_cast<double>(y.count()) * static_cast<double>(kernel.rows());
}

// The shape of a kernel with `in` input channels (in each group) and `out` output channels.
Shape kernel_shape(const Window& window, std::int64_t in, std::int64_t out, bool flat) {
  return flat ? Shape{window.size[1], in, out} : Shape{window.size[0], window.size[1], in, out};
}

bool is_flat(const Shape& kernel) { return kernel.rank() == 3; }

std::string convolution_attributes(const Window& window, std::int64_t groups, AttributeText rest) {
  AttributeText text;
  text.word(to_string(window));
  if (groups != 1) text.value("groups", groups);
  return text.word(rest.text()).text();
}

// The names of the input and output channels in placement rules. The channels of grouped convolutions cannot be split,
// because a shard would have other groups.
struct ChannelNames {
  std::string in, out;

  explicit ChannelNames(std::int64_t groups) : in(groups == 1 ? "i" : "."), out(groups == 1 ? "o" : ".") {}
  std::string kernel(bool flat) const { return (flat ? "." : "..") + in + out; }
};

}  // namespace

std::string Conv2d::attributes() const {
  AttributeText text;
  add_function(text, function);
  return convolution_attributes(window, groups, text);
}

std::vector<TensorType> Conv2d::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  const Shape& kernel = inputs[1].shape;
  const std::int64_t out = kernel.back();
  require(x.rank() == 4 && x[3] % groups == 0 && out % groups == 0 && (!is_flat(kernel) || window.size[0] == 1) &&
              kernel == kernel_shape(window, x[3] / groups, out, is_flat(kernel)),
          "conv2d: x, kernel and window do not fit");
  require(inputs.size() == 2 || inputs[2].shape == Shape{out}, "conv2d: the bias does not fit the kernel");
  return {{{x[0], window.output(0, x[1]), window.output(1, x[2]), out}, inputs[0].dtype}};
}

OutputPlacements Conv2d::placements(const PlacementQuery& query) const {
  const ChannelNames names(groups);
  const auto& [in, out] = names;
  const bool flat = is_flat(query.input_types[1].shape);
  PlacementRule rule;
  if (function.kind == ActivationKind::none) {
    const std::string sum = "+" + in + "S";
    rule = {{"a.." + in + "+S", names.kernel(flat), out + sum}, {"a.." + out + sum}};
  } else {  // a nonlinear function of partial sums is not partial
    rule = {{"a...", (flat ? ".." : "...") + out, out}, {"a.." + out}};
  }
  rule.inputs.resize(query.inputs.size());  // with or without a bias
  return place_by(rule, query);
}

double Conv2d::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return convolution_flops(outputs[0].shape, inputs[1].shape);
}

std::optional<Op> Conv2d::fused_with(const Op& op, const Op& reader, std::size_t) const {
  return fused_with_activation(*this, op, reader);
}

void Conv2d::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiate_linear(
      op, gradient_before(function, op, differentiator),
      [&] { return std::make_shared<Conv2dGradInput>(window, groups, differentiator.tensor(op.inputs[0]).type.shape); },
      [&](bool bias) {
        const bool flat = is_flat(differentiator.tensor(op.inputs[1]).type.shape);
        return std::make_shared<Conv2dGradWeights>(window, groups, bias, differentiator.accumulate(), flat);
      },
      differentiator);
}

std::string Conv2dGradInput::attributes() const {
  return convolution_attributes(window, groups, AttributeText().flag("accumulate", accumulate));
}

std::vector<InPlace> Conv2dGradInput::in_place() const { return in_place_of(accumulate); }

std::vector<TensorType> Conv2dGradInput::outputs(std::span<const TensorType> inputs) const {
  return {{input, inputs[0].dtype}};
}

OutputPlacements Conv2dGradInput::placements(const PlacementQuery& query) const {
  const ChannelNames names(groups);
  const auto& [in, out] = names;
  const std::string dx = "a.." + in + "+" + out + "S";
  PlacementRule rule{{"a.." + out + "+S", names.kernel(is_flat(query.input_types[1].shape))}, {dx}};
  if (accumulate) rule.inputs.push_back(dx);
  return place_by(rule, query);
}

// With a shard of the input channels of the kernel, the op computes that shard of dx.
std::shared_ptr<const OpDef> Conv2dGradInput::on_shard(std::span<const TensorType> inputs,
                                                       std::span<const std::optional<int>> split,
                                                       const ShardPosition& ranks) const {
  if (split[1] != inputs[1].shape.rank() - 2) return nullptr;
  return std::make_shared<Conv2dGradInput>(window, groups, input.with_back(input.back() / ranks.count), accumulate);
}

double Conv2dGradInput::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return convolution_flops(inputs[0].shape, inputs[1].shape);
}

// Fuses with the sum that adds another gradient of x.
std::optional<Op> Conv2dGradInput::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  if (accumulate) return {};
  return fused_with_sum(std::make_shared<Conv2dGradInput>(window, groups, input, true), op, reader, operand);
}

// The op is linear in dy and in the kernel. Let g be the gradient with respect to dx. The gradient with respect to dy
// is the convolution of g; the gradient with respect to the kernel is the kernel gradient of a convolution with the
// input g.
void Conv2dGradInput::differentiate(const Op& op, Differentiator& differentiator) const {
  require(!accumulate, "conv2d_grad_input: no gradient if it accumulates");
  const TensorId gradient = differentiator.gradient_of(op.outputs[0]), kernel = op.inputs[1];
  if (differentiator.needs_gradient(kernel)) {
    const bool flat = is_flat(differentiator.tensor(kernel).type.shape);
    differentiator.emit_into(
        std::make_shared<Conv2dGradWeights>(window, groups, false, differentiator.accumulate(), flat),
        {gradient, op.inputs[0]}, {differentiator.parameter_gradient(kernel)}, op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) {
    const auto convolution = std::make_shared<Conv2d>(window, groups);
    differentiator.contribute(op.inputs[0], differentiator.emit(convolution, {gradient, kernel}, op)[0]);
  }
}

std::string Conv2dGradWeights::attributes() const {
  AttributeText text;
  text.flag("flat", flat).flag("bias", bias).flag("accumulate", accumulate);
  return convolution_attributes(window, groups, text);
}

std::vector<TensorType> Conv2dGradWeights::outputs(std::span<const TensorType> inputs) const {
  const std::int64_t in = inputs[0].shape[3], out = inputs[1].shape[3];
  std::vector<TensorType> types{{kernel_shape(window, in / groups, out, flat), DType::float32}};
  if (bias) types.push_back({{out}, DType::float32});
  return types;
}

OutputPlacements Conv2dGradWeights::placements(const PlacementQuery& query) const {
  const ChannelNames names(groups);
  const auto& [in, out] = names;
  PlacementRule rule{{"a.." + in, "a.." + out + "+S"}, {names.kernel(flat) + "+aS"}};
  if (bias) rule.outputs.push_back(out + "+aS");
  return kept_if(accumulate, place_by(rule, query), query);
}

double Conv2dGradWeights::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return convolution_flops(inputs[1].shape, outputs[0].shape);
}

}  // namespace trainctl
