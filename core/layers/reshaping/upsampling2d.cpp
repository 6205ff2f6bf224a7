// upsampling2d: enlarges images by whole factors.
#include "core/base/format.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/layers/images.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

struct Upsampling2dOptions final : ChainedLayer {
  Size2d size{2, 2};
  Interpolation interpolation = Interpolation::nearest;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_image(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t pixels = x[static_cast<std::int64_t>(axis)];
      if (checked_multiply(pixels, size[axis]) <= max_pixels) continue;
      return layer.error(format("input {} enlarged by {} is more than {} pixels", pixels, size[axis], max_pixels),
                         inputs[0]);
    }
    return layer.output(layer.op(std::make_shared<Upsample2d>(size, interpolation), {inputs[0].tensor})[0]);
  }
};

}  // namespace

Section upsampling2d() {
  using O = Upsampling2dOptions;
  return layer_keys<O>("upsampling2d", "Images enlarged by whole factors.")
      .key("size", &O::size, "Factors of height and width.", at_least(1))
      .key("interpolation", &O::interpolation,
           "nearest: each pixel repeated; bilinear: interpolated between the centres of pixels, as TensorFlow resizes "
           "images.")
      .shorthand("size");
}

}  // namespace trainctl
