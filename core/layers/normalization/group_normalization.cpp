// group_normalization: normalizes groups of channels of each sample; parameters gamma and beta (channels).
#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/normalization/group_norm.h"
#include "core/layers/normalization/norm.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

// Returns "8 does" or "6 and 8 do": the divisors of the channels next to a number of groups that is no divisor.
std::string nearest(std::int64_t groups, std::int64_t channels) {
  std::int64_t below = 0, above = 0;
  const auto consider = [&](std::int64_t divisor) {
    if (divisor < groups) below = std::max(below, divisor);
    if (divisor > groups) above = above == 0 ? divisor : std::min(above, divisor);
  };
  for (std::int64_t k = 1; k <= channels / k; ++k) {
    if (channels % k != 0) continue;
    consider(k);
    consider(channels / k);
  }
  return below > 0 && above > 0 ? format("{} and {} do", below, above) : format("{} does", std::max(below, above));
}

struct GroupNormalizationOptions final : NormLayer {
  std::int64_t groups = 32;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const std::int64_t channels = layer.shape(inputs[0]).back(), count = groups == -1 ? channels : groups;
    if (count == 0 || channels % count != 0) {
      return layer.error(
          format("groups {} does not divide {}: {}", groups, counted(channels, "channel"), nearest(count, channels)),
          inputs[0]);
    }
    return normalise(layer, inputs[0], std::make_shared<GroupNorm>(GroupNormAttributes{attributes(), count}));
  }
};

}  // namespace

Section group_normalization() {
  using O = GroupNormalizationOptions;
  return norm_keys(
      layer_keys<O>(
          "group_normalization",
          "Normalizes groups of channels of each sample to mean 0 and variance 1 over all positions, then scales by "
          "gamma and shifts by beta. The result does not depend on the other samples; Wu and He (2018).")
          .key("groups", &O::groups,
               "Number of groups, which must divide the number of channels; -1: one group for each channel.",
               between(-1, max_channels)));
}

}  // namespace trainctl
