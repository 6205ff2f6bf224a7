// Pooling over windows of an image, or over the whole image.
#include "core/layers/pooling2d.h"

#include "core/base/format.h"

namespace trainctl {
namespace {

// The most pixels of a max pooling window: the position of the maximum is kept in one byte.
constexpr std::int64_t largest_max_window = 256;

Feature no_image(Layer& layer, const Feature& input) {
  return layer.error(format("input {} is no image (height, width, channels)", to_string(layer.shape(input))), input);
}

}  // namespace

template <PoolMode mode>
Keys<Pooling2dOptions<mode>> Pooling2dOptions<mode>::keys() {
  using O = Pooling2dOptions<mode>;
  constexpr bool max = mode == PoolMode::max;
  return layer_keys<O>(max ? "max_pooling2d" : "average_pooling2d",
                       max ? "The largest value of each window of an image."
                           : "The mean of each window of an image; padding does not count.")
      .key("pool_size", &O::pool_size, "Height and width of the window, pixels.", at_least(1))
      .key("strides", &O::strides, "Steps of the window down and right, pixels; none: pool_size.", at_least(1))
      .key("padding", &O::padding, "same, valid, or pixels at each border (down, right).", at_least(0));
}

template <PoolMode mode>
Feature Pooling2dOptions<mode>::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape x = layer.shape(inputs[0]);
  if (x.rank() != 3) return no_image(layer, inputs[0]);
  Window window{pool_size, strides.value_or(pool_size), {1, 1}, {}, {}};
  if (const auto wrong = resolve_padding(window, padding, {x[0], x[1]}, "window")) {
    return layer.error(*wrong, inputs[0]);
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (window.padding_before[axis] < window.size[axis]) continue;
    return layer.error(
        format("padding {} leaves windows of {} pixels empty", window.padding_before[axis], window.size[axis]),
        inputs[0]);
  }
  if (mode == PoolMode::max && checked_multiply(pool_size[0], pool_size[1]) > largest_max_window) {
    return layer.error(
        format("a window of {}x{} has more than {} elements", pool_size[0], pool_size[1], largest_max_window),
        inputs[0]);
  }
  std::vector<std::string> further;
  if (mode == PoolMode::max && layer.training()) further.push_back("winners");
  auto pool = std::make_shared<Pool2d>(mode, window, layer.training());
  return layer.output(layer.op(std::move(pool), {inputs[0].tensor}, further)[0]);
}

template struct Pooling2dOptions<PoolMode::max>;
template struct Pooling2dOptions<PoolMode::average>;

Keys<GlobalAveragePooling2dOptions> GlobalAveragePooling2dOptions::keys() {
  return layer_keys<GlobalAveragePooling2dOptions>("global_average_pooling2d", "The mean of each channel of an image.");
}

Feature GlobalAveragePooling2dOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  if (layer.shape(inputs[0]).rank() != 3) return no_image(layer, inputs[0]);
  return layer.output(layer.op(std::make_shared<GlobalAveragePool2d>(), {inputs[0].tensor})[0]);
}

}  // namespace trainctl
