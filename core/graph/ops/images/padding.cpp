// Shapes, placements and gradients of padding and cropping.
#include "core/graph/ops/images/padding.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

std::string describe(const Borders& b) {
  return format("{},{},{},{}", b.before[0], b.before[1], b.after[0], b.after[1]);
}

// The type of x with borders added (sign 1) or removed (sign -1).
std::vector<TensorType> bordered(const TensorType& x, const Borders& b, std::int64_t sign) {
  require(x.shape.rank() == 4, "borders: x is not a batch of images");
  TensorType y = x;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    std::int64_t& size = y.shape[static_cast<std::int64_t>(axis) + 1];
    size = checked_add(size, sign * checked_add(b.before[axis], b.after[axis]));
    require(size > 0, "borders: no pixels are left of an image");
  }
  return {y};
}

}  // namespace

std::string Pad2d::attributes() const { return describe(borders); }

std::vector<TensorType> Pad2d::outputs(std::span<const TensorType> inputs) const {
  return bordered(inputs[0], borders, 1);
}

OutputPlacements Pad2d::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[0]) + "+S";
  return place_by({{x}, {x}}, query);
}

void Pad2d::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Crop2d>(borders), {dy}, op)[0]);
}

std::string Crop2d::attributes() const { return describe(borders); }

std::vector<TensorType> Crop2d::outputs(std::span<const TensorType> inputs) const {
  return bordered(inputs[0], borders, -1);
}

OutputPlacements Crop2d::placements(const PlacementQuery& query) const {
  const std::string x = samples_and_channels(query.input_types[0]) + "+S";
  return place_by({{x}, {x}}, query);
}

void Crop2d::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Pad2d>(borders), {dy}, op)[0]);
}

}  // namespace trainctl
