// Checks inputs of layers over volumes, and reshapes volumes to images and back.
#include "core/layers/volumes.h"

#include "core/base/format.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {
namespace {

TensorId reshaped(Layer& layer, TensorId x, Shape shape) {
  return layer.op(std::make_shared<Reshape>(std::move(shape)), {x})[0];
}

Shape shape_of(Layer& layer, TensorId x) { return layer.type(layer.output(x)).shape; }

}  // namespace

bool is_volume(Layer& layer, const Feature& input) {
  const Shape x = layer.shape(input);
  if (x.rank() == 4) return true;
  layer.error(format("input {} is not a volume (depth, height, width, channels)", to_string(x)), input);
  return false;
}

TensorId append_by_pass(Layer& layer, TensorId volumes, const AppendImageOps& on_slices,
                        const AppendImageOps& along_depth) {
  const Shape x = shape_of(layer, volumes);
  const std::int64_t samples = x[0], channels = x[4];
  std::int64_t depth = x[1], height = x[2], width = x[3];
  TensorId y = volumes;
  if (on_slices) {
    y = on_slices(reshaped(layer, y, {checked_multiply(samples, depth), height, width, channels}));
    if (y == no_tensor) return no_tensor;
    const Shape slices = shape_of(layer, y);
    height = slices[1];
    width = slices[2];
  }
  if (along_depth) {
    y = along_depth(reshaped(layer, y, {samples, depth, checked_multiply(height, width), channels}));
    if (y == no_tensor) return no_tensor;
    depth = shape_of(layer, y)[1];
  }
  return y == volumes ? y : reshaped(layer, y, {samples, depth, height, width, channels});
}

}  // namespace trainctl
