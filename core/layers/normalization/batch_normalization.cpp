// batch_normalization: normalizes each channel over the batch and all other dimensions; gamma, beta, moving_mean and
// moving_variance (channels).
#include "core/base/format.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct BatchNormalizationOptions final : ChainedLayer {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  bool synchronized = false;
  InitializerChoice beta_initializer{"zeros"};
  InitializerChoice gamma_initializer{"ones"};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (inputs[0].masked() && layer.type(layer.output(inputs[0].mask)) != padding_mask_of(layer.type(inputs[0]))) {
      return layer.error(
          format("its input {} has a padding mask {}, which needs a value for each position: put batch_normalization "
                 "before the layer that makes the mask, or use layer_normalization",
                 to_string(layer.shape(inputs[0])), to_string(layer.shape(layer.output(inputs[0].mask)))),
          inputs[0]);
    }
    const std::int64_t channels = layer.shape(inputs[0]).back();
    BatchNormAttributes attributes{static_cast<float>(epsilon), scale, center, false, false};
    std::vector<TensorId> operands{inputs[0].tensor};
    if (scale) {
      operands.push_back(layer.parameter("gamma", {channels}, make_initializer(gamma_initializer, {channels}), false));
    }
    if (center) {
      operands.push_back(layer.parameter("beta", {channels}, make_initializer(beta_initializer, {channels}), false));
    }
    const bool by_batch = layer.training() && !layer.frozen();
    TensorId mean = no_tensor, variance = no_tensor, y = no_tensor;
    if (by_batch) {
      std::vector<std::string> results{"mean", "variance"};
      if (inputs[0].masked()) {
        attributes.masked = true;
        operands.push_back(inputs[0].mask);
        results.emplace_back("count");
      }
      auto norm = std::make_shared<BatchNorm>(attributes);
      norm->synchronized = synchronized;
      const auto outputs = layer.op(std::move(norm), operands, std::move(results));
      y = outputs[0], mean = outputs[1], variance = outputs[2];
    }
    const auto keep = static_cast<float>(momentum);
    const TensorId moving_mean = layer.statistic("moving_mean", channels, keep, 0, mean);
    const TensorId moving_variance = layer.statistic("moving_variance", channels, keep, 1, variance);
    if (!by_batch) {
      operands.insert(operands.end(), {moving_mean, moving_variance});
      y = layer.op(std::make_shared<BatchNormInference>(attributes), operands)[0];
    }
    return layer.output(y);
  }
  MaskUse mask_use() const override { return MaskUse::keeps; }
};

}  // namespace

Section batch_normalization() {
  using O = BatchNormalizationOptions;
  return layer_keys<O>("batch_normalization",
                       "Normalizes each channel to mean 0 and variance 1 over the batch, then scales by gamma and "
                       "shifts by beta. The statistics of a micro-batch count each sample once, whatever its weight; "
                       "running statistics are means over samples in the same way. With a padding mask, the "
                       "statistics are those of the positions that are not padding.")
      .key("momentum", &O::momentum, "Share of the running statistics that one step keeps.", from_zero_to_below(1))
      .key("epsilon", &O::epsilon, "Added to the variance.", more_than(0))
      .key("center", &O::center, "Whether beta is added.")
      .key("scale", &O::scale, "Whether the values are scaled by gamma.")
      .key("synchronized", &O::synchronized,
           "Whether the statistics in training are computed over the samples of a micro-batch on all replicas; "
           "otherwise each replica normalizes its samples by its own statistics.")
      .key("beta_initializer", &O::beta_initializer, "Initial values of beta.")
      .key("gamma_initializer", &O::gamma_initializer, "Initial values of gamma.");
}

}  // namespace trainctl
