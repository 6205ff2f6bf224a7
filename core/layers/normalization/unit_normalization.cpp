// unit_normalization: divides the last dimension by its Euclidean norm.
#include "core/layers/expression/layer_expression.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct UnitNormalizationOptions final : ChainedLayer {
  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return expand_expression(layer, inputs[0], "normalize(x, -1, 2, 1e-12)", {});
  }
};

}  // namespace

Section unit_normalization() {
  return layer_keys<UnitNormalizationOptions>(
      "unit_normalization",
      "Divides the last dimension of each sample by the root of the sum of its squares, so that it has length 1.");
}

}  // namespace trainctl
