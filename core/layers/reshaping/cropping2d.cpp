// cropping2d: removes rows and columns at the borders of images.
#include "core/base/format.h"
#include "core/graph/ops/images/padding.h"
#include "core/layers/images.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

struct Cropping2dOptions final : ChainedLayer {
  std::array<Size2d, 2> cropping{};  // above and below, left and right

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_image(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t pixels = x[static_cast<std::int64_t>(axis)];
      if (checked_add(cropping[axis][0], cropping[axis][1]) < pixels) continue;
      return layer.error(format("cropping {} and {} removes all of the {} {}", cropping[axis][0], cropping[axis][1],
                                pixels, axis == 0 ? "rows" : "columns"),
                         inputs[0]);
    }
    const Borders borders{{cropping[0][0], cropping[1][0]}, {cropping[0][1], cropping[1][1]}};
    return layer.output(layer.op(std::make_shared<Crop2d>(borders), {inputs[0].tensor})[0]);
  }
};

}  // namespace

Section cropping2d() {
  using O = Cropping2dOptions;
  return layer_keys<O>("cropping2d", "Images without their borders.")
      .key("cropping", &O::cropping,
           "Pixels: a number for all borders, [above and below, left and right], or [[above, below], [left, right]].",
           at_least(0))
      .shorthand("cropping");
}

}  // namespace trainctl
