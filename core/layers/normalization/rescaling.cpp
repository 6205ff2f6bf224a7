// The layers rescaling and normalization, which scale and shift values by fixed numbers that are not learned.
#include <cmath>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

Feature scaled(Layer& layer, const Feature& input, SampleFormat format) {
  if (layer.type(input).dtype == DType::int32) return layer.error("the input holds tokens, not values", input);
  return layer.output(layer.op(std::make_shared<Normalize>(layer.compute(), format), {input.tensor})[0]);
}

struct RescalingOptions final : ChainedLayer {
  double scale = 1, offset = 0;

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return scaled(layer, inputs[0], {{}, {static_cast<float>(scale)}, {static_cast<float>(offset)}});
  }
};

struct NormalizationOptions final : ChainedLayer {
  std::vector<double> mean, variance;

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const std::int64_t channels = layer.shape(inputs[0]).back();
    const auto size = static_cast<std::int64_t>(mean.size());
    if (size != 1 && size != channels) {
      return layer.error(format("{} for {}", counted(size, "mean"), counted(channels, "channel")), inputs[0]);
    }
    SampleFormat numbers;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double scale = 1 / std::max(std::sqrt(variance[i]), 1e-7);
      numbers.scale.push_back(static_cast<float>(scale));
      numbers.offset.push_back(static_cast<float>(-mean[i] * scale));
    }
    return scaled(layer, inputs[0], std::move(numbers));
  }
};

void check_lengths(const NormalizationOptions& options, const Node& node, Reader& reader) {
  if (options.mean.empty() || options.mean.size() != options.variance.size()) {
    reader.error(node.location, format("{} means and {} variances: one of each for every channel, or one for all",
                                       options.mean.size(), options.variance.size()));
  }
}

}  // namespace

Section rescaling() {
  return layer_keys<RescalingOptions>("rescaling", "x * scale + offset.")
      .required("scale", &RescalingOptions::scale, "The factor.")
      .key("offset", &RescalingOptions::offset, "The summand that is added to the product.")
      .shorthand("scale");
}

Section normalization() {
  return layer_keys<NormalizationOptions>("normalization",
                                          "(x - mean) / sqrt(variance), for each channel: Keras' layer after `adapt`. "
                                          "batch_normalization learns its statistics.")
      .required("mean", &NormalizationOptions::mean, "One mean for each channel, or one mean for all channels.")
      .required("variance", &NormalizationOptions::variance,
                "One variance for each channel, or one variance for all channels.", at_least(0))
      .check(check_lengths);
}

}  // namespace trainctl
