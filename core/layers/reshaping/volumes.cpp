// upsampling3d, zero_padding3d, cropping3d: repeat, add and remove the pixels of volumes, by ops on images.
#include "core/layers/volumes.h"
#include "core/base/format.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

// For each axis of a volume the pixels before and after it: in front and behind, above and below, left and right.
using Borders3d = std::array<Size2d, 3>;

// The pass that applies an op to images; empty if the op would not change them.
AppendImageOps pass(Layer& layer, bool changes, std::shared_ptr<const OpDef> def) {
  if (!changes) return {};
  return [&layer, def = std::move(def)](TensorId images) { return layer.op(def, {images})[0]; };
}

// Pads or crops (Op is Pad2d or Crop2d) the slices, and then along the depth.
template <class Op>
Feature with_borders(Layer& layer, const Feature& input, const Borders3d& b) {
  const Size2d none{};
  const Borders of_slices{{b[1][0], b[2][0]}, {b[1][1], b[2][1]}}, of_depth{{b[0][0], 0}, {b[0][1], 0}};
  return layer.output(append_by_pass(layer, input.tensor,
                                     pass(layer, b[1] != none || b[2] != none, std::make_shared<Op>(of_slices)),
                                     pass(layer, b[0] != none, std::make_shared<Op>(of_depth))));
}

struct Upsampling3dOptions final : ChainedLayer {
  Size3d size{2, 2, 2};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_volume(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t pixels = x[static_cast<std::int64_t>(axis)];
      if (checked_multiply(pixels, size[axis]) <= max_pixels) continue;
      return layer.error(format("input {} enlarged by {} is more than {} pixels", pixels, size[axis], max_pixels),
                         inputs[0]);
    }
    const auto by = [&](const Size2d& factors) {
      return pass(layer, factors != Size2d{1, 1}, std::make_shared<Upsample2d>(factors, Interpolation::nearest));
    };
    return layer.output(append_by_pass(layer, inputs[0].tensor, by({size[1], size[2]}), by({size[0], 1})));
  }
};

struct ZeroPadding3dOptions final : ChainedLayer {
  Borders3d padding{Size2d{1, 1}, Size2d{1, 1}, Size2d{1, 1}};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_volume(layer, inputs[0])) return {};
    return with_borders<Pad2d>(layer, inputs[0], padding);
  }
};

struct Cropping3dOptions final : ChainedLayer {
  Borders3d cropping{Size2d{1, 1}, Size2d{1, 1}, Size2d{1, 1}};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_volume(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    static constexpr const char* names[]{"slices", "rows", "columns"};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t pixels = x[static_cast<std::int64_t>(axis)];
      if (checked_add(cropping[axis][0], cropping[axis][1]) < pixels) continue;
      return layer.error(format("cropping {} and {} removes all of the {} {}", cropping[axis][0], cropping[axis][1],
                                pixels, names[axis]),
                         inputs[0]);
    }
    return with_borders<Crop2d>(layer, inputs[0], cropping);
  }
};

constexpr const char* border_meaning =
    "Pixels: a number for all borders, [in front and behind, above and below, left and right], or [[in front, behind], "
    "[above, below], [left, right]].";

}  // namespace

Section upsampling3d() {
  return layer_keys<Upsampling3dOptions>("upsampling3d",
                                         "Volumes (depth, height, width, channels) with each pixel repeated.")
      .key("size", &Upsampling3dOptions::size, "Factors of depth, height and width.", at_least(1))
      .shorthand("size");
}

Section zero_padding3d() {
  return layer_keys<ZeroPadding3dOptions>("zero_padding3d", "Zeros around volumes (depth, height, width, channels).")
      .key("padding", &ZeroPadding3dOptions::padding, border_meaning, at_least(0))
      .shorthand("padding");
}

Section cropping3d() {
  return layer_keys<Cropping3dOptions>("cropping3d", "Volumes (depth, height, width, channels) without their borders.")
      .key("cropping", &Cropping3dOptions::cropping, border_meaning, at_least(0))
      .shorthand("cropping");
}

}  // namespace trainctl
