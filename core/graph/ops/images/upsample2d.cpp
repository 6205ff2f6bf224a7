// Shapes, placements and gradients of upsampling.
#include "core/graph/ops/images/upsample2d.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

std::string describe(const std::array<std::int64_t, 2>& factors, Interpolation interpolation) {
  return AttributeText().word(name_of(interpolation)).word(format("{}x{}", factors[0], factors[1])).text();
}

// Repeating pixels needs no operation. An interpolated value needs two products and a sum along each of two rows, and
// again between the rows.
double interpolation_flops(const Shape& y, Interpolation interpolation) {
  return interpolation == Interpolation::nearest ? 0 : 9.0 * static_cast<double>(y.count());
}

OutputPlacements place_images(const PlacementQuery& query) { return place_by({{"a..c+S"}, {"a..c+S"}}, query); }

}  // namespace

std::string Upsample2d::attributes() const { return describe(factors, interpolation); }

std::vector<TensorType> Upsample2d::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 4, "upsample2d: x is not a batch of images");
  const Shape y{x[0], checked_multiply(x[1], factors[0]), checked_multiply(x[2], factors[1]), x[3]};
  return {{y, inputs[0].dtype}};
}

OutputPlacements Upsample2d::placements(const PlacementQuery& query) const { return place_images(query); }

double Upsample2d::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return interpolation_flops(outputs[0].shape, interpolation);
}

void Upsample2d::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto def = std::make_shared<Upsample2dGrad>(factors, interpolation);
  differentiator.contribute(op.inputs[0], differentiator.emit(def, {dy}, op)[0]);
}

std::string Upsample2dGrad::attributes() const { return describe(factors, interpolation); }

std::vector<TensorType> Upsample2dGrad::outputs(std::span<const TensorType> inputs) const {
  const Shape& dy = inputs[0].shape;
  require(dy.rank() == 4 && dy[1] % factors[0] == 0 && dy[2] % factors[1] == 0,
          "upsample2d_grad: the sizes of dy are not multiples of the factors");
  return {{{dy[0], dy[1] / factors[0], dy[2] / factors[1], dy[3]}, inputs[0].dtype}};
}

OutputPlacements Upsample2dGrad::placements(const PlacementQuery& query) const { return place_images(query); }

double Upsample2dGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const Shape& dy = inputs[0].shape;
  return static_cast<double>(dy.count()) + interpolation_flops(dy, interpolation);
}

}  // namespace trainctl
