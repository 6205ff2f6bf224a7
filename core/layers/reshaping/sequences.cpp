// upsampling1d, zero_padding1d, cropping1d: repeat, add and remove steps of sequences, computed on images one pixel
// high.
#include "core/base/format.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/layers/images.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

// Appends an op on images to a layer on sequences.
Feature on_images(Layer& layer, const Feature& input, std::shared_ptr<const OpDef> def) {
  return layer.output(as_sequences(layer, layer.op(std::move(def), {as_images(layer, input)})[0]));
}

struct Upsampling1dOptions final : ChainedLayer {
  std::int64_t size = 2;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const std::int64_t steps = layer.shape(inputs[0])[0];
    if (checked_multiply(steps, size) > max_pixels) {
      return layer.error(format("input {} enlarged by {} is more than {} steps", steps, size, max_pixels), inputs[0]);
    }
    return on_images(layer, inputs[0], std::make_shared<Upsample2d>(Size2d{1, size}, Interpolation::nearest));
  }
};

struct ZeroPadding1dOptions final : ChainedLayer {
  std::array<std::int64_t, 2> padding{1, 1};  // before and after

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    return on_images(layer, inputs[0], std::make_shared<Pad2d>(Borders{{0, padding[0]}, {0, padding[1]}}));
  }
};

struct Cropping1dOptions final : ChainedLayer {
  std::array<std::int64_t, 2> cropping{1, 1};  // before and after

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const std::int64_t steps = layer.shape(inputs[0])[0];
    if (checked_add(cropping[0], cropping[1]) >= steps) {
      return layer.error(format("cropping {} and {} removes all of the {} steps", cropping[0], cropping[1], steps),
                         inputs[0]);
    }
    return on_images(layer, inputs[0], std::make_shared<Crop2d>(Borders{{0, cropping[0]}, {0, cropping[1]}}));
  }
};

}  // namespace

Section upsampling1d() {
  return layer_keys<Upsampling1dOptions>("upsampling1d", "Sequences (steps, channels) with each step repeated.")
      .key("size", &Upsampling1dOptions::size, "How often each step occurs in the output.", at_least(1))
      .shorthand("size");
}

Section zero_padding1d() {
  return layer_keys<ZeroPadding1dOptions>("zero_padding1d", "Zeros before and after sequences (steps, channels).")
      .key("padding", &ZeroPadding1dOptions::padding, "Steps: a number for both ends, or [before, after].", at_least(0))
      .shorthand("padding");
}

Section cropping1d() {
  return layer_keys<Cropping1dOptions>("cropping1d", "Sequences (steps, channels) without their first and last steps.")
      .key("cropping", &Cropping1dOptions::cropping, "Steps: a number for both ends, or [before, after].", at_least(0))
      .shorthand("cropping");
}

}  // namespace trainctl
