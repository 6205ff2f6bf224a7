// max_pooling1d, average_pooling1d, global_max_pooling1d, global_average_pooling1d: pooling over sequences, computed as
// pooling over images one pixel high.
#include "core/graph/ops/masks.h"
#include "core/layers/images.h"
#include "core/layers/pooling/pooling2d.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

template <PoolMode mode>
struct Pooling1dOptions final : ChainedLayer {
  std::int64_t pool_size = 2;
  std::optional<std::int64_t> strides;  // none: pool_size
  PaddingMode padding = PaddingMode::valid;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const Window window{{1, pool_size}, {1, strides.value_or(pool_size)}, {1, 1}, {}, {}};
    const TensorId y = pool(layer, inputs[0], as_images(layer, inputs[0]), mode, window, padding);
    return y == no_tensor ? Feature{} : layer.output(as_sequences(layer, y));
  }
};

template <PoolMode mode>
struct GlobalPooling1dOptions final : ChainedLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    if (mode == PoolMode::average && inputs[0].masked()) {
      return layer.output(layer.op(std::make_shared<MaskedMean>(), {inputs[0].tensor, inputs[0].mask})[0]);
    }
    return layer.output(pool_globally(layer, inputs[0], as_images(layer, inputs[0]), mode));
  }
};

template <PoolMode mode>
Section windowed(std::string kind, std::string meaning) {
  using O = Pooling1dOptions<mode>;
  return layer_keys<O>(std::move(kind), std::move(meaning))
      .key("pool_size", &O::pool_size, "Length of the window in steps.", at_least(1))
      .key("strides", &O::strides, "Steps from window to window; none: pool_size.", at_least(1))
      .key("padding", &O::padding, "same or valid.")
      .shorthand("pool_size");
}

}  // namespace

Section max_pooling1d() {
  return windowed<PoolMode::max>("max_pooling1d", "The largest value of each window of a sequence.");
}

Section average_pooling1d() {
  return windowed<PoolMode::average>("average_pooling1d",
                                     "The mean of each window of a sequence; padding does not count.");
}

Section global_max_pooling1d() {
  return layer_keys<GlobalPooling1dOptions<PoolMode::max>>("global_max_pooling1d",
                                                           "The largest value of each channel of a sequence.");
}

Section global_average_pooling1d() {
  return layer_keys<GlobalPooling1dOptions<PoolMode::average>>(
      "global_average_pooling1d",
      "The mean of each channel of a sequence, over the positions that "
      "its padding mask shows if it has one.");
}

}  // namespace trainctl
