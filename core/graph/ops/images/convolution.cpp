// Shapes, placements and gradients of convolutions.
#include "core/graph/ops/images/convolution.h"

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
template <std::size_t axes>
Shape kernel_shape(const WindowOf<axes>& window, std::int64_t in, std::int64_t out, bool flat) {
  std::vector<std::int64_t> sizes(window.size.begin() + (flat ? 1 : 0), window.size.end());
  sizes.insert(sizes.end(), {in, out});
  return Shape(std::move(sizes));
}

template <std::size_t axes>
bool is_flat(const Shape& kernel) {
  return kernel.rank() == static_cast<std::int64_t>(axes) + 1;
}

template <std::size_t axes>
std::string convolution_attributes(const WindowOf<axes>& window, std::int64_t groups, AttributeText rest) {
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
};

// The names of the dimensions of a kernel without its channels, which are not split.
template <std::size_t axes>
std::string window_names(bool flat) {
  return std::string(flat ? axes - 1 : axes, '.');
}

// The names of the dimensions of images or volumes, without their channels: the samples can be split.
template <std::size_t axes>
std::string sample_names() {
  return "a" + std::string(axes, '.');
}

}  // namespace

template <std::size_t axes>
std::string Conv<axes>::attributes() const {
  AttributeText text;
  add_function(text, function);
  return convolution_attributes(window, groups, text);
}

template <std::size_t axes>
std::vector<TensorType> Conv<axes>::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  const Shape& kernel = inputs[1].shape;
  const std::int64_t out = kernel.back();
  const bool flat = is_flat<axes>(kernel);
  require(x.rank() == static_cast<std::int64_t>(axes) + 2 && x.back() % groups == 0 && out % groups == 0 &&
              (!flat || window.size[0] == 1) && kernel == kernel_shape(window, x.back() / groups, out, flat),
          "convolution: x, kernel and window do not fit");
  require(inputs.size() == 2 || inputs[2].shape == Shape{out}, "convolution: the bias does not fit the kernel");
  Shape y = x.with_back(out);
  for (int axis = 0; axis < static_cast<int>(axes); ++axis) y[axis + 1] = window.output(axis, x[axis + 1]);
  return {{std::move(y), inputs[0].dtype}};
}

template <std::size_t axes>
OutputPlacements Conv<axes>::placements(const PlacementQuery& query) const {
  const ChannelNames names(groups);
  const auto& [in, out] = names;
  const std::string sample = sample_names<axes>();
  const std::string kernel = window_names<axes>(is_flat<axes>(query.input_types[1].shape));
  PlacementRule rule;
  if (function.kind == ActivationKind::none) {
    const std::string sum = "+" + in + "S";
    rule = {{sample + in + "+S", kernel + in + out, out + sum}, {sample + out + sum}};
  } else {  // a nonlinear function of partial sums is not partial
    rule = {{sample + ".", kernel + "." + out, out}, {sample + out}};
  }
  rule.inputs.resize(query.inputs.size());  // with or without a bias
  return place_by(rule, query);
}

template <std::size_t axes>
double Conv<axes>::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return convolution_flops(outputs[0].shape, inputs[1].shape);
}

template <std::size_t axes>
std::optional<Op> Conv<axes>::fused_with(const Op& op, const Op& reader, std::size_t) const {
  return fused_with_activation(*this, op, reader);
}

template <std::size_t axes>
void Conv<axes>::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiate_linear(
      op, gradient_before(function, op, differentiator),
      [&] {
        return std::make_shared<ConvGradInput<axes>>(window, groups, differentiator.tensor(op.inputs[0]).type.shape);
      },
      [&](bool bias) {
        const bool flat = is_flat<axes>(differentiator.tensor(op.inputs[1]).type.shape);
        return std::make_shared<ConvGradWeights<axes>>(window, groups, bias, differentiator.accumulate(), flat);
      },
      differentiator);
}

template <std::size_t axes>
std::string ConvGradInput<axes>::attributes() const {
  return convolution_attributes(window, groups, AttributeText().flag("accumulate", accumulate));
}

template <std::size_t axes>
std::vector<InPlace> ConvGradInput<axes>::in_place() const {
  return in_place_of(accumulate);
}

template <std::size_t axes>
std::vector<TensorType> ConvGradInput<axes>::outputs(std::span<const TensorType> inputs) const {
  return {{input, inputs[0].dtype}};
}

template <std::size_t axes>
OutputPlacements ConvGradInput<axes>::placements(const PlacementQuery& query) const {
  const ChannelNames names(groups);
  const auto& [in, out] = names;
  const std::string sample = sample_names<axes>(), dx = sample + in + "+" + out + "S";
  const std::string kernel = window_names<axes>(is_flat<axes>(query.input_types[1].shape)) + in + out;
  PlacementRule rule{{sample + out + "+S", kernel}, {dx}};
  if (accumulate) rule.inputs.push_back(dx);
  return place_by(rule, query);
}

// With a shard of the input channels of the kernel, the op computes that shard of dx.
template <std::size_t axes>
std::shared_ptr<const OpDef> ConvGradInput<axes>::on_shard(std::span<const TensorType> inputs,
                                                           std::span<const std::optional<int>> split,
                                                           const ShardPosition& ranks) const {
  if (split[1] != inputs[1].shape.rank() - 2) return nullptr;
  return std::make_shared<ConvGradInput<axes>>(window, groups, input.with_back(input.back() / ranks.count), accumulate);
}

template <std::size_t axes>
double ConvGradInput<axes>::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return convolution_flops(inputs[0].shape, inputs[1].shape);
}

// Fuses with the sum that adds another gradient of x.
template <std::size_t axes>
std::optional<Op> ConvGradInput<axes>::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  if (accumulate) return {};
  return fused_with_sum(std::make_shared<ConvGradInput<axes>>(window, groups, input, true), op, reader, operand);
}

// The op is linear in dy and in the kernel. Let g be the gradient with respect to dx. The gradient with respect to dy
// is the convolution of g; the gradient with respect to the kernel is the kernel gradient of a convolution with the
// input g.
template <std::size_t axes>
void ConvGradInput<axes>::differentiate(const Op& op, Differentiator& differentiator) const {
  require(!accumulate, "convolution: no gradient of an input gradient that accumulates");
  const TensorId gradient = differentiator.gradient_of(op.outputs[0]), kernel = op.inputs[1];
  if (differentiator.needs_gradient(kernel)) {
    const bool flat = is_flat<axes>(differentiator.tensor(kernel).type.shape);
    differentiator.emit_into(
        std::make_shared<ConvGradWeights<axes>>(window, groups, false, differentiator.accumulate(), flat),
        {gradient, op.inputs[0]}, {differentiator.parameter_gradient(kernel)}, op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) {
    const auto convolution = std::make_shared<Conv<axes>>(window, groups);
    differentiator.contribute(op.inputs[0], differentiator.emit(convolution, {gradient, kernel}, op)[0]);
  }
}

template <std::size_t axes>
std::string ConvGradWeights<axes>::attributes() const {
  AttributeText text;
  text.flag("flat", flat).flag("bias", bias).flag("accumulate", accumulate);
  return convolution_attributes(window, groups, text);
}

template <std::size_t axes>
std::vector<TensorType> ConvGradWeights<axes>::outputs(std::span<const TensorType> inputs) const {
  const std::int64_t in = inputs[0].shape.back(), out = inputs[1].shape.back();
  std::vector<TensorType> types{{kernel_shape(window, in / groups, out, flat), DType::float32}};
  if (bias) types.push_back({{out}, DType::float32});
  return types;
}

template <std::size_t axes>
OutputPlacements ConvGradWeights<axes>::placements(const PlacementQuery& query) const {
  const ChannelNames names(groups);
  const auto& [in, out] = names;
  const std::string sample = sample_names<axes>(), kernel = window_names<axes>(flat) + in + out;
  PlacementRule rule{{sample + in, sample + out + "+S"}, {kernel + "+aS"}};
  if (bias) rule.outputs.push_back(out + "+aS");
  return kept_if(accumulate, place_by(rule, query), query);
}

template <std::size_t axes>
double ConvGradWeights<axes>::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return convolution_flops(inputs[1].shape, outputs[0].shape);
}

template struct Conv<2>;
template struct Conv<3>;
template struct ConvGradInput<2>;
template struct ConvGradInput<3>;
template struct ConvGradWeights<2>;
template struct ConvGradWeights<3>;

}  // namespace trainctl
