// layer_normalization: normalizes the last dimension; parameters gamma and beta (last dimension).
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/layers/normalization/norm.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct LayerNormalizationOptions final : NormLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return normalise(layer, inputs[0], std::make_shared<LayerNorm>(LayerNormAttributes{attributes()}));
  }
};

}  // namespace

Section layer_normalization() {
  using O = LayerNormalizationOptions;
  return norm_keys(layer_keys<O>("layer_normalization",
                                 "Normalizes the last dimension of each sample to mean 0 and variance 1, then scales "
                                 "by gamma and shifts by beta."));
}

}  // namespace trainctl
