// Translates padding, cropping and upsampling of images.
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/images/upsample2d.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

// Returns the number of the height's dimension.
std::int64_t height_axis(Channels channels) { return channels == Channels::first ? 2 : 1; }

}  // namespace

void pad2d(const OnnxOp& op) {
  const Channels channels = op.channels();
  const Borders& borders = op.as<Pad2d>().borders;
  std::vector<std::int64_t> pads(8);  // before the first pixel of each dimension, then after the last
  for (std::size_t k = 0; k < 2; ++k) {
    const std::size_t axis = static_cast<std::size_t>(height_axis(channels)) + k;
    pads[axis] = borders.before[k];
    pads[axis + 4] = borders.after[k];
  }
  op.set_output(op.node("Pad", {op.value(0, channels), op.integers(pads)}), channels);
}

void crop2d(const OnnxOp& op) {
  const Channels channels = op.channels();
  const Borders& borders = op.as<Crop2d>().borders;
  const Shape& x = op.input_type(0).shape;
  const std::int64_t axis = height_axis(channels);
  const std::string starts = op.integers({borders.before[0], borders.before[1]});
  const std::string ends = op.integers({x[1] - borders.after[0], x[2] - borders.after[1]});
  op.set_output(op.node("Slice", {op.value(0, channels), starts, ends, op.integers({axis, axis + 1})}), channels);
}

void upsample2d(const OnnxOp& op) {
  const auto& upsample = op.as<Upsample2d>();
  const std::vector<float> scales{1, 1, static_cast<float>(upsample.factors[0]),
                                  static_cast<float>(upsample.factors[1])};
  std::vector<OnnxAttribute> attributes{
      {"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}};
  if (upsample.interpolation == Interpolation::bilinear) {
    attributes = {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}};
  }
  op.set_output(op.node("Resize", {op.value(0, Channels::first), "", op.numbers({4}, scales)}, attributes),
                Channels::first);
}

}  // namespace trainctl::onnx
