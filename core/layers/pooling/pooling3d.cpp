// max_pooling3d, average_pooling3d, global_max_pooling3d, global_average_pooling3d: pooling over volumes.
//
// The largest value of a window is the largest of its slices' largest values. The mean is the mean of its slices'
// means, since each slice has the same number of pixels that are not padding.
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/pooling/pooling2d.h"
#include "core/layers/table.h"
#include "core/layers/volumes.h"

namespace trainctl {
namespace {

template <PoolMode mode>
struct Pooling3dOptions final : ChainedLayer {
  Size3d pool_size{2, 2, 2};
  std::optional<Size3d> strides;  // none: pool_size
  Padding3d padding = PaddingMode::valid;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_volume(layer, inputs[0])) return {};
    const Size3d steps = strides.value_or(pool_size);
    // A pass over the axes `first` and `second`, of which an axis of one pixel is not an axis of the volume.
    const auto pass = [&](const Window& window, const Padding& borders) {
      const bool changes =
          window != Window{} || (std::holds_alternative<Size2d>(borders) && std::get<Size2d>(borders) != Size2d{0, 0});
      if (!changes) return AppendImageOps();
      return AppendImageOps([&layer, &inputs, window, borders](TensorId images) {
        return pool(layer, inputs[0], images, mode, window, borders);
      });
    };
    Padding of_slices = PaddingMode::valid, of_depth = PaddingMode::valid;
    if (const auto* pixels = std::get_if<Size3d>(&padding)) {
      of_depth = Size2d{(*pixels)[0], 0};
      of_slices = Size2d{(*pixels)[1], (*pixels)[2]};
    } else {
      of_depth = of_slices = std::get<PaddingMode>(padding);
    }
    const TensorId y = append_by_pass(
        layer, inputs[0].tensor, pass({{pool_size[1], pool_size[2]}, {steps[1], steps[2]}, {1, 1}, {}, {}}, of_slices),
        pass({{pool_size[0], 1}, {steps[0], 1}, {1, 1}, {}, {}}, of_depth));
    return y == no_tensor ? Feature{} : layer.output(y);
  }
};

template <PoolMode mode>
struct GlobalPooling3dOptions final : ChainedLayer {
  // The slices of a volume, one below the other, are an image.
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_volume(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    const Shape image = layer.batch_of({checked_multiply(x[0], x[1]), x[2], x[3]});
    const TensorId images = layer.op(std::make_shared<Reshape>(image), {inputs[0].tensor})[0];
    return layer.output(pool_globally(layer, inputs[0], images, mode));
  }
};

template <PoolMode mode>
Section volume_pooling(std::string kind, std::string meaning) {
  using O = Pooling3dOptions<mode>;
  return layer_keys<O>(std::move(kind), std::move(meaning))
      .key("pool_size", &O::pool_size, "Depth, height and width of the window.", at_least(1))
      .key("strides", &O::strides, "Steps of the window along depth, height and width; none: pool_size.", at_least(1))
      .key("padding", &O::padding,
           "same, valid, or the number of pixels at each border (in front and behind, above and below, left and "
           "right).",
           at_least(0))
      .shorthand("pool_size");
}

}  // namespace

Section max_pooling3d() {
  return volume_pooling<PoolMode::max>(
      "max_pooling3d", "The largest value of each window of a volume (depth, height, width, channels).");
}

Section average_pooling3d() {
  return volume_pooling<PoolMode::average>(
      "average_pooling3d",
      "The mean of each window of a volume (depth, height, width, channels); padding does not count.");
}

Section global_max_pooling3d() {
  return layer_keys<GlobalPooling3dOptions<PoolMode::max>>("global_max_pooling3d",
                                                           "The largest value of each channel of a volume.");
}

Section global_average_pooling3d() {
  return layer_keys<GlobalPooling3dOptions<PoolMode::average>>("global_average_pooling3d",
                                                               "The mean of each channel of a volume.");
}

}  // namespace trainctl
