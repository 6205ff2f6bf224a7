// Shapes, placements and gradients of batch normalisation fused with ReLU and max pooling.
#include "core/graph/ops/normalization/batch_norm_pool.h"

#include <numeric>

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// The numbers [first, first + count).
std::vector<int> numbers(int first, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

}  // namespace

std::string BatchNormPool::attributes() const {
  return AttributeText().word(BatchNorm(a).attributes()).word(to_string(window)).text();
}

std::vector<TensorType> BatchNormPool::outputs(std::span<const TensorType> inputs) const {
  require(a.masks_by_x() && !a.masked, "batch_norm_pool: the op has no ReLU, or has a residual or a padding mask");
  const std::vector<TensorType> normalised = BatchNorm(a).outputs(inputs);
  const std::vector<TensorType> pooled = Pool2d(PoolMode::max, window, true).outputs(std::span(normalised).first(1));
  return {pooled[0], normalised[1], normalised[2], pooled[1]};
}

OutputPlacements BatchNormPool::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[0]);
  PlacementRule rule{{x}, {x, "c|a", "c|a", x}};
  rule.inputs.resize(query.inputs.size(), "c");
  return place_by(rule, query);
}

double BatchNormPool::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  return BatchNorm(a).flops(inputs, outputs) + Pool2d(PoolMode::max, window, true).flops(inputs, outputs);
}

void BatchNormPool::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId x = op.inputs[0];
  std::vector<TensorId> inputs{differentiator.gradient_of(op.outputs[0]), op.outputs[3]};
  inputs.insert(inputs.end(), op.inputs.begin(), op.inputs.end());
  inputs.insert(inputs.end(), {op.outputs[1], op.outputs[2]});
  std::vector<TensorId> outputs{no_tensor};
  for (std::size_t i = 1; i < op.inputs.size(); ++i)
    outputs.push_back(parameter_gradient_or_none(op.inputs[i], differentiator));
  const auto def =
      std::make_shared<BatchNormPoolGrad>(a, window, differentiator.tensor(x).type.shape, differentiator.accumulate());
  const auto gradients = differentiator.emit_into(def, inputs, outputs, op);
  if (differentiator.needs_gradient(x)) differentiator.contribute(x, gradients[0]);
}

std::vector<SubOp> BatchNormPool::decomposition() const {
  const int inputs = 1 + a.scale + a.center, y = inputs, between = inputs + 4;
  return {{std::make_shared<BatchNorm>(a), numbers(0, inputs), {between, y + 1, y + 2}},
          {std::make_shared<Pool2d>(PoolMode::max, window, true), {between}, {y, y + 3}}};
}

std::string BatchNormPoolGrad::attributes() const {
  return AttributeText().word(BatchNormGrad(a, accumulate).attributes()).word(to_string(window)).text();
}

std::vector<TensorType> BatchNormPoolGrad::outputs(std::span<const TensorType> inputs) const {
  return BatchNormGrad(a, accumulate).outputs(inputs.subspan(1));  // BatchNormGrad takes the type of dx from x
}

OutputPlacements BatchNormPoolGrad::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[2]), dx = x + "+S";
  const std::size_t sums = std::size_t{0} + a.scale + a.center;
  PlacementRule rule{{dx, x, x}, {dx}};
  rule.inputs.resize(3 + sums, "c");
  rule.inputs.insert(rule.inputs.end(), 2, "c|a");
  rule.outputs.resize(1 + sums, "c+aS");
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 1, 1 + sums) : result;
}

std::vector<SubOp> BatchNormPoolGrad::decomposition() const {
  const int sums = a.scale + a.center, inputs = 5 + sums, between = inputs + 1 + sums;
  std::vector<int> normalised = numbers(1, inputs - 1);
  normalised[0] = between;
  return {{std::make_shared<Pool2dGrad>(PoolMode::max, window, input), {0, 1}, {between}},
          {std::make_shared<BatchNormGrad>(a, accumulate), normalised, numbers(inputs, 1 + sums)}};
}

}  // namespace trainctl
