// Pooling over windows of an image, or over the whole image.
#include "core/layers/pooling/pooling2d.h"

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/images/global_max_pool2d.h"
#include "core/layers/images.h"

namespace trainctl {
namespace {

// The largest number of pixels of a max pooling window: the position of the maximum is kept in one byte.
constexpr std::int64_t largest_max_window = 256;
// The largest number of pixels of an image in global max pooling: the position of the maximum is kept in 32 bits.
constexpr std::int64_t largest_max_image = 2'147'483'647;

// Returns why a window with resolved padding cannot be pooled over; empty if it can.
std::optional<std::string> problem_of(const Window& window, PoolMode mode) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (window.padding_before[axis] < window.size[axis]) continue;
    return format("padding {} leaves windows of {} empty", window.padding_before[axis],
                  counted(window.size[axis], "pixel"));
  }
  if (mode == PoolMode::average || checked_multiply(window.size[0], window.size[1]) <= largest_max_window) return {};
  return format("a window of {}x{} has more than {} elements", window.size[0], window.size[1], largest_max_window);
}

}  // namespace

TensorId pool(Layer& layer, const Feature& input, TensorId images, PoolMode mode, Window window,
              const Padding& padding) {
  const Shape x = layer.shape(layer.output(images));
  auto wrong = resolve_padding(window, padding, {x[0], x[1]}, "window");
  if (!wrong) wrong = problem_of(window, mode);
  if (wrong) {
    layer.error(*wrong, input);
    return no_tensor;
  }
  std::vector<std::string> further;
  if (mode == PoolMode::max && layer.training()) further.push_back("winners");
  return layer.op(std::make_shared<Pool2d>(mode, window, layer.training()), {images}, further)[0];
}

TensorId pool_globally(Layer& layer, const Feature& input, TensorId images, PoolMode mode) {
  if (mode == PoolMode::average) return layer.op(std::make_shared<GlobalAveragePool2d>(), {images})[0];
  const Shape x = layer.shape(layer.output(images));
  if (checked_multiply(x[0], x[1]) > largest_max_image) {
    layer.error(format("input {} has more than {} pixels", to_string(x), largest_max_image), input);
    return no_tensor;
  }
  std::vector<std::string> further;
  if (layer.training()) further.push_back("winners");
  return layer.op(std::make_shared<GlobalMaxPool2d>(layer.training()), {images}, further)[0];
}

template <PoolMode mode>
Keys<Pooling2dOptions<mode>> Pooling2dOptions<mode>::keys() {
  using O = Pooling2dOptions<mode>;
  constexpr bool max = mode == PoolMode::max;
  return layer_keys<O>(max ? "max_pooling2d" : "average_pooling2d",
                       max ? "The largest value of each window of an image."
                           : "The mean of each window of an image; padding does not count.")
      .key("pool_size", &O::pool_size, "Height and width of the window in pixels.", at_least(1))
      .key("strides", &O::strides, "Steps of the window down and right in pixels; none: pool_size.", at_least(1))
      .key("padding", &O::padding,
           "same, valid, or the number of pixels at each border (above and below, left and right).", at_least(0))
      .shorthand("pool_size");
}

template <PoolMode mode>
Feature Pooling2dOptions<mode>::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  if (!is_image(layer, inputs[0])) return {};
  const Window window{pool_size, strides.value_or(pool_size), {1, 1}, {}, {}};
  return layer.output(pool(layer, inputs[0], inputs[0].tensor, mode, window, padding));
}

template <PoolMode mode>
Keys<GlobalPooling2dOptions<mode>> GlobalPooling2dOptions<mode>::keys() {
  using O = GlobalPooling2dOptions<mode>;
  if constexpr (mode == PoolMode::max) {
    return layer_keys<O>("global_max_pooling2d", "The largest value of each channel of an image.");
  } else {
    return layer_keys<O>("global_average_pooling2d", "The mean of each channel of an image.");
  }
}

template <PoolMode mode>
Feature GlobalPooling2dOptions<mode>::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  if (!is_image(layer, inputs[0])) return {};
  return layer.output(pool_globally(layer, inputs[0], inputs[0].tensor, mode));
}

template struct Pooling2dOptions<PoolMode::max>;
template struct Pooling2dOptions<PoolMode::average>;
template struct GlobalPooling2dOptions<PoolMode::max>;
template struct GlobalPooling2dOptions<PoolMode::average>;

}  // namespace trainctl
