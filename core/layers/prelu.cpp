// prelu: a ReLU with a parameter alpha as its slope below 0. alpha has the shape of a sample or (1, ..., 1, channels).
#include "core/graph/ops/elementwise/prelu.h"

#include <algorithm>
#include <string>

#include "core/base/format.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

// Returns the axes as text: "[1, 2]".
std::string axes_text(const std::vector<std::int64_t>& axes) {
  std::string text;
  for (const std::int64_t axis : axes) text += (text.empty() ? "" : ", ") + std::to_string(axis);
  return "[" + text + "]";
}

struct PReluOptions final : ChainedLayer {
  InitializerChoice alpha_initializer{"zeros"};
  std::vector<std::int64_t> shared_axes;

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    Shape alpha = layer.shape(inputs[0]);
    std::vector<std::int64_t> sorted = shared_axes, positions;
    for (std::int64_t axis = 1; axis < alpha.rank(); ++axis) positions.push_back(axis);
    std::ranges::sort(sorted);
    const bool shared = !sorted.empty();
    if (shared && sorted != positions) {
      return layer.error(
          format("shared_axes {} of input {}: alpha can be shared along none of its axes{}", axes_text(shared_axes),
                 to_string(alpha), positions.empty() ? "" : ", or along all but the last: " + axes_text(positions)),
          inputs[0]);
    }
    for (std::int64_t k = 0; shared && k + 1 < alpha.rank(); ++k) alpha[k] = 1;
    const TensorId slope = layer.parameter("alpha", alpha, make_initializer(alpha_initializer, alpha), false);
    return layer.output(layer.op(std::make_shared<PRelu>(shared), {inputs[0].tensor, slope})[0]);
  }
};

}  // namespace

Section prelu() {
  using O = PReluOptions;
  return layer_keys<O>("prelu", "x where it is more than 0, else alpha * x with a learned alpha; He et al. (2015).")
      .key("alpha_initializer", &O::alpha_initializer, "Initial values of alpha.")
      .key("shared_axes", &O::shared_axes,
           "Axes of a sample, counted from 1, along which alpha is shared: all but the last ([1, 2]: one alpha for "
           "each channel of an image), or none (one alpha for each value).",
           at_least(1));
}

}  // namespace trainctl
