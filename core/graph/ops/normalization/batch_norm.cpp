// Shapes, placements and gradients of batch normalisation.
#include "core/graph/ops/normalization/batch_norm.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/normalization/batch_norm_fusion.h"
#include "core/graph/ops/normalization/batch_norm_pool.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText describe(const BatchNormAttributes& a) {
  AttributeText text;
  text.value("epsilon", a.epsilon).flag("scale", a.scale).flag("center", a.center);
  return text.flag("residual", a.residual).flag("relu", a.relu).flag("masked", a.masked);
}

TensorType per_channel(const TensorType& x) { return {{x.shape.back()}, DType::float32}; }

}  // namespace

TensorType batch_norm_mask(const TensorType& x) {
  std::vector<std::int64_t> sizes = x.shape.sizes();
  sizes.back() /= 8;
  return {Shape(std::move(sizes)), DType::uint8};
}

TensorType padding_mask_of(const TensorType& x) {
  const std::vector<std::int64_t>& sizes = x.shape.sizes();
  return {Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1)), DType::uint8};
}

std::string BatchNorm::attributes() const { return describe(a).text(); }

std::vector<TensorType> BatchNorm::outputs(std::span<const TensorType> inputs) const {
  const std::size_t vectors = std::size_t{0} + a.scale + a.center;
  require(inputs.size() == 1 + vectors + a.masked + a.residual, "batch_norm: wrong number of inputs");
  std::vector<TensorType> types{inputs[0], per_channel(inputs[0]), per_channel(inputs[0])};
  if (a.masked) {
    require(inputs[1 + vectors] == padding_mask_of(inputs[0]), "batch_norm: the padding mask does not fit x");
    types.push_back({{}, DType::float32});
  }
  if (a.masks_by_bits(inputs[0].shape.back())) types.push_back(batch_norm_mask(inputs[0]));
  return types;
}

OutputPlacements BatchNorm::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[0]);
  PlacementRule rule{{x}, {x, "c|a", "c|a"}};
  rule.inputs.resize(std::size_t{1} + a.scale + a.center, "c");
  if (a.masked) {
    rule.inputs.push_back(samples(padding_mask_of(query.input_types[0])));
    rule.outputs.emplace_back("|a");  // the number of positions that the padding mask shows
  }
  if (a.residual) rule.inputs.push_back(x);
  if (query.output_types.size() > rule.outputs.size()) rule.outputs.push_back(x);  // the mask
  return place_by(rule, query);
}

double BatchNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  // For each element: mean 1, variance 3, scale and shift 2, and 1 for each fused op.
  return static_cast<double>(inputs[0].shape.count()) * (6 + a.residual + a.relu);
}

// Fuses with a sum, with a ReLU, or with max pooling if the op already has a ReLU, no residual and no padding mask.
std::optional<Op> BatchNorm::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  const auto* pool = reader.get_if<Pool2d>();
  if (pool == nullptr) return fused_batch_norm(*this, op, reader, operand);
  if (!pool->training || pool->mode != PoolMode::max || !a.masks_by_x() || a.masked) return {};
  Op fused = fused_op(op, std::make_shared<BatchNormPool>(a, pool->window), reader);
  fused.outputs.push_back(reader.outputs[1]);
  return fused;
}

void BatchNorm::differentiate(const Op& op, Differentiator& differentiator) const {
  std::size_t next = 1;
  std::vector<TensorId> inputs{differentiator.gradient_of(op.outputs[0]), op.inputs[0]};
  std::vector<TensorId> outputs{no_tensor};
  const std::int64_t channels = differentiator.tensor(op.inputs[0]).type.shape.back();
  if (a.masks_by_bits(channels)) inputs.push_back(op.outputs.back());
  if (a.masks_by_y(channels)) inputs.push_back(op.outputs[0]);
  if (a.scale) {
    inputs.push_back(op.inputs[next]);
    outputs.push_back(parameter_gradient_or_none(op.inputs[next++], differentiator));
  }
  if (a.center) {
    if (a.masks_by_x()) inputs.push_back(op.inputs[next]);
    outputs.push_back(parameter_gradient_or_none(op.inputs[next++], differentiator));
  }
  if (a.residual) outputs.push_back(no_tensor);
  inputs.insert(inputs.end(), {op.outputs[1], op.outputs[2]});
  if (a.masked) inputs.insert(inputs.end(), {op.inputs[next++], op.outputs[3]});
  const auto grads =
      differentiator.emit_into(std::make_shared<BatchNormGrad>(a, differentiator.accumulate()), inputs, outputs, op);
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], grads[0]);
  if (a.residual && differentiator.needs_gradient(op.inputs[next]))
    differentiator.contribute(op.inputs[next], grads.back());
}

std::string BatchNormGrad::attributes() const { return describe(a).flag("accumulate", accumulate).text(); }

std::vector<TensorType> BatchNormGrad::outputs(std::span<const TensorType> inputs) const {
  const TensorType& x = inputs[1];
  std::vector<TensorType> types{x};
  if (a.scale) types.push_back(per_channel(x));
  if (a.center) types.push_back(per_channel(x));
  if (a.residual) types.push_back(x);
  return types;
}

OutputPlacements BatchNormGrad::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[1]), dx = x + "+S";
  const std::int64_t channels = query.input_types[1].shape.back();
  const std::size_t sums = std::size_t{0} + a.scale + a.center;
  PlacementRule rule{{dx, x}, {dx}};
  if (a.masks_by_bits(channels) || a.masks_by_y(channels)) rule.inputs.push_back(x);
  if (a.scale) rule.inputs.emplace_back("c");
  if (a.center && a.masks_by_x()) rule.inputs.emplace_back("c");
  rule.inputs.insert(rule.inputs.end(), 2, "c|a");
  if (a.masked) rule.inputs.insert(rule.inputs.end(), {samples(padding_mask_of(query.input_types[1])), "|a"});
  rule.outputs.insert(rule.outputs.end(), sums, "c+aS");
  if (a.residual) rule.outputs.push_back(dx);
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 1, 1 + sums) : result;
}

std::string BatchNormInference::attributes() const { return describe(a).text(); }

std::vector<TensorType> BatchNormInference::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements BatchNormInference::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]), channel = x.substr(x.size() - 1);
  PlacementRule rule{{x}, {x}};
  rule.inputs.resize(std::size_t{3} + a.scale + a.center, channel);
  if (a.residual) rule.inputs.push_back(x);
  return place_by(rule, query);
}

std::optional<Op> BatchNormInference::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  return fused_batch_norm(*this, op, reader, operand);
}

void BatchNormInference::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId x = op.inputs[0], gamma = op.inputs[1], residual = op.inputs.back();
  const TensorId variance = op.inputs[std::size_t{2} + a.scale + a.center];
  const TensorId dy = gradient_before({a.relu ? ActivationKind::relu : ActivationKind::none}, op, differentiator);
  if (a.residual && differentiator.needs_gradient(residual)) differentiator.contribute(residual, dy);
  if (!differentiator.needs_gradient(x)) return;
  std::vector<TensorId> inputs{dy};
  if (a.scale) inputs.push_back(gamma);
  inputs.push_back(variance);
  const auto grad = std::make_shared<BatchNormInferenceGrad>(a.epsilon, a.scale);
  differentiator.contribute(x, differentiator.emit(grad, std::move(inputs), op)[0]);
}

std::string BatchNormInferenceGrad::attributes() const {
  return AttributeText().value("epsilon", epsilon).flag("scale", scale).text();
}

std::vector<TensorType> BatchNormInferenceGrad::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == std::size_t{2} + scale, "batch_norm_inference_grad: wrong number of inputs");
  return {inputs[0]};
}

OutputPlacements BatchNormInferenceGrad::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]), channel = x.substr(x.size() - 1);
  PlacementRule rule{{x + "+S"}, {x + "+S"}};
  rule.inputs.resize(query.input_types.size(), channel);
  return place_by(rule, query);
}

}  // namespace trainctl
