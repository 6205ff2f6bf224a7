// The layers gaussian_noise and spatial_dropout, which change values at random in training alone.
#include "core/graph/ops/noise.h"
#include "core/base/random.h"
#include "core/graph/ops/dropout.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct GaussianNoiseOptions final : ChainedLayer {
  double stddev = 0;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!layer.training() || stddev == 0) return layer.output(inputs[0].tensor);
    std::vector<TensorId> operands = layer.dropout_inputs();
    operands.insert(operands.begin(), inputs[0].tensor);
    const auto noise =
        std::make_shared<GaussianNoise>(static_cast<float>(stddev), layer.seed(), name_hash(layer.path()));
    return layer.output(layer.op(noise, operands)[0]);
  }
};

struct SpatialDropoutOptions final : ChainedLayer {
  double rate = 0;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!layer.training() || rate == 0) return layer.output(inputs[0].tensor);
    std::vector<TensorId> operands = layer.dropout_inputs();
    operands.insert(operands.begin(), inputs[0].tensor);
    const auto dropout =
        std::make_shared<Dropout>(static_cast<float>(rate), layer.seed(), name_hash(layer.path()), true);
    return layer.output(layer.op(dropout, operands)[0]);
  }
};

}  // namespace

Section gaussian_noise() {
  return layer_keys<GaussianNoiseOptions>("gaussian_noise", "In training, adds normal noise of mean 0.")
      .required("stddev", &GaussianNoiseOptions::stddev, "Standard deviation of the noise.", at_least(0))
      .shorthand("stddev");
}

Section spatial_dropout() {
  return layer_keys<SpatialDropoutOptions>(
             "spatial_dropout",
             "In training, zeroes whole channels of a sample at random, the same in all positions, and scales up the "
             "others: Keras' spatial_dropout1d and spatial_dropout2d.")
      .alias("spatial_dropout1d")
      .alias("spatial_dropout2d")
      .required("rate", &SpatialDropoutOptions::rate, "Share of channels that become zero.", from_zero_to_below(1))
      .shorthand("rate");
}

}  // namespace trainctl
