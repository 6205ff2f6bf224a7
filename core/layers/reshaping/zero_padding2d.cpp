// zero_padding2d: adds rows and columns of zeros around images.
#include "core/graph/ops/images/padding.h"
#include "core/layers/images.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

struct ZeroPadding2dOptions final : ChainedLayer {
  std::array<Size2d, 2> padding{Size2d{1, 1}, Size2d{1, 1}};  // above and below, left and right

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_image(layer, inputs[0])) return {};
    const Borders borders{{padding[0][0], padding[1][0]}, {padding[0][1], padding[1][1]}};
    return layer.output(layer.op(std::make_shared<Pad2d>(borders), {inputs[0].tensor})[0]);
  }
};

}  // namespace

Section zero_padding2d() {
  using O = ZeroPadding2dOptions;
  return layer_keys<O>("zero_padding2d", "Zeros around images.")
      .key("padding", &O::padding,
           "Pixels: a number for all borders, [above and below, left and right], or [[above, below], [left, right]].",
           at_least(0))
      .shorthand("padding");
}

}  // namespace trainctl
