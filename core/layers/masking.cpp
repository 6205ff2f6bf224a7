// masking: makes the padding mask of sequences of values.
#include "core/base/format.h"
#include "core/graph/ops/masks.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct MaskingOptions final : ChainedLayer {
  double mask_value = 0;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (layer.shape(inputs[0]).rank() < 2) {
      return layer.error(format("input {} has no positions (steps, channels)", to_string(layer.shape(inputs[0]))),
                         inputs[0]);
    }
    const auto def = std::make_shared<PositionMask>(static_cast<float>(mask_value));
    const TensorId mask = layer.op(def, {inputs[0].tensor})[0];
    return layer.output(layer.op(std::make_shared<MaskPositions>(), {inputs[0].tensor, mask})[0], mask);
  }
  MaskUse mask_use() const override { return MaskUse::own; }
};

}  // namespace

Section masking() {
  using O = MaskingOptions;
  return layer_keys<O>("masking",
                       "Makes a padding mask: a position whose values all are mask_value is padding, and its values "
                       "become 0. Recurrent layers leave such positions out, attention does not see them, and means, "
                       "the statistics of batch_normalization, losses and metrics do not count them.")
      .key("mask_value", &O::mask_value, "The value of padding.")
      .shorthand("mask_value");
}

}  // namespace trainctl
