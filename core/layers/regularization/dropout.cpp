// Expands dropout and spatial_dropout, which set values, channels or samples to zero at random, only in training.
#include "core/layers/regularization/dropout.h"

#include <algorithm>
#include <optional>

#include "core/base/format.h"
#include "core/base/random.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

Feature drop(Layer& layer, const Feature& input, double rate, DropoutUnit unit) {
  if (!layer.training() || rate == 0) return layer.output(input.tensor);
  std::vector<TensorId> operands = layer.dropout_inputs();
  operands.insert(operands.begin(), input.tensor);
  const auto op = std::make_shared<Dropout>(static_cast<float>(rate), layer.seed(), name_hash(layer.path()), unit);
  return layer.output(layer.op(op, operands)[0]);
}

// Returns the unit that one value of a mask of this shape covers, in samples of shape x; empty if the shape corresponds
// to no unit.
std::optional<DropoutUnit> unit_of(std::vector<std::int64_t> mask, const Shape& x) {
  if (mask.size() != x.sizes().size()) return {};
  for (std::size_t k = 0; k < mask.size(); ++k) {
    if (mask[k] == -1) mask[k] = x.sizes()[k];
  }
  if (mask == x.sizes()) return DropoutUnit::element;
  const bool whole_channels = std::all_of(mask.begin(), mask.end() - 1, [](std::int64_t size) { return size == 1; });
  if (whole_channels && mask.back() == 1) return DropoutUnit::sample;
  if (whole_channels && mask.back() == x.back()) return DropoutUnit::channel;
  return {};
}

struct SpatialDropoutOptions final : ChainedLayer {
  double rate = 0;

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return drop(layer, inputs[0], rate, DropoutUnit::channel);
  }
};

}  // namespace

Keys<DropoutOptions> DropoutOptions::keys() {
  return layer_keys<DropoutOptions>("dropout", "In training, sets values to zero at random and scales up the others.")
      .required("rate", &DropoutOptions::rate, "Share of values that become zero.", from_zero_to_below(1))
      .key("noise_shape", &DropoutOptions::noise_shape,
           "Shape of a sample's mask, without the batch: 1 for a dimension that shares one value, -1 for the size of "
           "the input's dimension. [1, 1, 1] drops whole images (stochastic depth, before the sum of a residual "
           "block), [1, 1, -1] whole channels.",
           at_least(-1))
      .shorthand("rate");
}

Feature DropoutOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape x = layer.shape(inputs[0]);
  const auto unit = noise_shape.empty() ? DropoutUnit::element : unit_of(noise_shape, x);
  if (!unit) {
    return layer.error(
        format("noise_shape for input {} needs a size for each of its {} dimensions: -1 for all to drop single "
               "values, 1 for all but the last to drop whole channels, or 1 for all to drop whole samples",
               to_string(x), x.rank()),
        inputs[0]);
  }
  return drop(layer, inputs[0], rate, *unit);
}

Section spatial_dropout() {
  return layer_keys<SpatialDropoutOptions>(
             "spatial_dropout",
             "In training, sets whole channels of a sample to zero at random, the same at all positions, and scales up "
             "the others: Keras' spatial_dropout1d, spatial_dropout2d and spatial_dropout3d.")
      .alias("spatial_dropout1d")
      .alias("spatial_dropout2d")
      .alias("spatial_dropout3d")
      .required("rate", &SpatialDropoutOptions::rate, "Share of channels that become zero.", from_zero_to_below(1))
      .shorthand("rate");
}

}  // namespace trainctl
