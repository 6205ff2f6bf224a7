// The layer gaussian_noise.
#include "core/graph/ops/elementwise/noise.h"
#include "core/base/random.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct GaussianNoiseOptions final : ChainedLayer {
  double stddev = 0;

  bool changes_values_alone() const override { return true; }
  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!layer.training() || stddev == 0) return layer.output(inputs[0].tensor);
    std::vector<TensorId> operands = layer.dropout_inputs();
    operands.insert(operands.begin(), inputs[0].tensor);
    const auto noise =
        std::make_shared<GaussianNoise>(static_cast<float>(stddev), layer.seed(), name_hash(layer.path()));
    return layer.output(layer.op(noise, operands)[0]);
  }
};

}  // namespace

Section gaussian_noise() {
  return layer_keys<GaussianNoiseOptions>("gaussian_noise", "In training, adds normal noise of mean 0.")
      .required("stddev", &GaussianNoiseOptions::stddev, "Standard deviation of the noise.", at_least(0))
      .shorthand("stddev");
}

}  // namespace trainctl
