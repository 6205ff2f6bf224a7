// Shapes, placements and gradients of pooling.
#include "core/graph/ops/images/pool2d.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

AttributeText describe(PoolMode mode, const Window& window) {
  return AttributeText().word(mode == PoolMode::max ? "max" : "average").word(to_string(window));
}

// Returns the op without the relu that it applies to its result, if its definition is a Def and has one.
template <class Def>
std::optional<Op> without_relu(const Op& op) {
  const auto* def = op.get_if<Def>();
  if (def == nullptr || def->function.kind != ActivationKind::relu) return {};
  Def linear = *def;
  linear.function = {};
  Op result = op;
  result.def = std::make_shared<Def>(std::move(linear));
  return result;
}

}  // namespace

std::optional<std::pair<Op, Op>> move_relu_after_pooling(const Op& op, const Op& reader) {
  const auto* pool = reader.get_if<Pool2d>();
  if (pool == nullptr || pool->mode != PoolMode::max || pool->relu) return {};
  if (pool->window.size[0] * pool->window.size[1] > Pool2d::no_winner) return {};
  std::optional<Op> linear = without_relu<Conv2d>(op);
  if (!linear) linear = without_relu<Add>(op);
  if (!linear) linear = without_relu<AddBias>(op);
  if (!linear) return {};
  Op pooling = reader;
  pooling.def = std::make_shared<Pool2d>(pool->mode, pool->window, pool->training, true);
  return std::pair(*std::move(linear), std::move(pooling));
}

std::string Pool2d::attributes() const {
  return describe(mode, window).flag("training", training).flag("relu", relu).text();
}

std::vector<TensorType> Pool2d::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 4, "pool2d: x is not a batch of images");
  const Shape y{x[0], window.output(0, x[1]), window.output(1, x[2]), x[3]};
  std::vector<TensorType> types{{y, inputs[0].dtype}};
  if (training && mode == PoolMode::max) types.push_back({y, DType::uint8});
  return types;
}

OutputPlacements Pool2d::placements(const PlacementQuery& query) const {
  const char* x = mode == PoolMode::max ? "a..c" : "a..c+S";
  return place_by({{x}, std::vector<std::string>(query.output_types.size(), x)}, query);
}

double Pool2d::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return static_cast<double>(outputs[0].shape.count()) * static_cast<double>(window.size[0]) *
         static_cast<double>(window.size[1]);
}

void Pool2d::differentiate(const Op& op, Differentiator& differentiator) const {
  std::vector<TensorId> inputs{differentiator.gradient_of(op.outputs[0])};
  if (mode == PoolMode::max) inputs.push_back(op.outputs.at(1));
  auto def = std::make_shared<Pool2dGrad>(mode, window, differentiator.tensor(op.inputs[0]).type.shape);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(def), inputs, op)[0]);
}

std::string Pool2dGrad::attributes() const { return describe(mode, window).value("input", to_string(input)).text(); }

std::vector<TensorType> Pool2dGrad::outputs(std::span<const TensorType> inputs) const {
  return {{input, inputs[0].dtype}};
}

OutputPlacements Pool2dGrad::placements(const PlacementQuery& query) const {
  PlacementRule rule{{"a..c+S", "a..c"}, {"a..c+S"}};
  rule.inputs.resize(query.inputs.size());  // with or without winners
  return place_by(rule, query);
}

std::vector<TensorType> GlobalAveragePool2d::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 4, "global_average_pool2d: x is not a batch of images");
  return {{{x[0], x[3]}, inputs[0].dtype}};
}

OutputPlacements GlobalAveragePool2d::placements(const PlacementQuery& query) const {
  return place_by({{"a..c+S"}, {"ac+S"}}, query);
}

double GlobalAveragePool2d::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count());
}

void GlobalAveragePool2d::differentiate(const Op& op, Differentiator& differentiator) const {
  auto def = std::make_shared<GlobalAveragePool2dGrad>(differentiator.tensor(op.inputs[0]).type.shape);
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(def), {dy}, op)[0]);
}

std::string GlobalAveragePool2dGrad::attributes() const {
  return AttributeText().value("input", to_string(input)).text();
}

std::vector<TensorType> GlobalAveragePool2dGrad::outputs(std::span<const TensorType> inputs) const {
  return {{input, inputs[0].dtype}};
}

OutputPlacements GlobalAveragePool2dGrad::placements(const PlacementQuery& query) const {
  return place_by({{"ac+S"}, {"a..c+S"}}, query);
}

}  // namespace trainctl
