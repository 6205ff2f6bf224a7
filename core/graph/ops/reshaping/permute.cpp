// Shapes, placements and gradients of permutations, and the loops that compute them.
#include "core/graph/ops/reshaping/permute.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Permute::attributes() const {
  std::string text;
  for (std::int64_t axis : order) text += (text.empty() ? "" : ",") + std::to_string(axis);
  return "order=" + text;
}

std::vector<TensorType> Permute::outputs(std::span<const TensorType> inputs) const {
  require(std::ssize(order) == inputs[0].shape.rank() && order[0] == 0,
          "permute: the order does not have every dimension, or moves the first one");
  TensorType y = inputs[0];
  for (std::int64_t k = 0; k < y.shape.rank(); ++k) {
    y.shape[k] = inputs[0].shape[order[static_cast<std::size_t>(k)]];
  }
  return {y};
}

OutputPlacements Permute::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]);
  std::string y;
  for (std::int64_t axis : order) y += x[static_cast<std::size_t>(axis)];
  return place_by({{x + "+S"}, {y + "+S"}}, query);
}

void Permute::differentiate(const Op& op, Differentiator& differentiator) const {
  std::vector<std::int64_t> back(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    back[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Permute>(std::move(back)), {dy}, op)[0]);
}

PermutedLoops loops_of(const Shape& x, const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> stride(order.size(), 1);
  for (std::size_t axis = order.size() - 1; axis > 0; --axis) {
    stride[axis - 1] = stride[axis] * x[static_cast<std::int64_t>(axis)];
  }
  PermutedLoops loops;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t size = x[order[k]], step = stride[static_cast<std::size_t>(order[k])];
    if (size == 1) continue;
    if (!loops.sizes.empty() && loops.strides.back() == size * step) {
      loops.sizes.back() *= size;
      loops.strides.back() = step;
    } else {
      loops.sizes.push_back(size);
      loops.strides.push_back(step);
    }
  }
  if (loops.sizes.empty()) loops = {{1}, {1}};
  return loops;
}

}  // namespace trainctl
