// Takes one position of sequences, and repeats a vector for each sample.
#include "core/layers/broadcast.h"

#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {
namespace {

TensorId reshaped(Layer& layer, TensorId x, const Shape& sample) {
  if (layer.shape(layer.output(x)) == sample) return x;
  return layer.op(std::make_shared<Reshape>(layer.batch_of(sample)), {x})[0];
}

}  // namespace

TensorId take_position(Layer& layer, TensorId x, std::int64_t index) {
  const Shape sample = layer.shape(layer.output(x));
  const std::int64_t steps = sample[0], channels = sample[1];
  if (steps == 1) return x;
  const TensorId images = reshaped(layer, x, {1, steps, channels});
  const Borders others{{0, index}, {0, steps - 1 - index}};
  return reshaped(layer, layer.op(std::make_shared<Crop2d>(others), {images})[0], {1, channels});
}

TensorId repeat_for_samples(Layer& layer, TensorId x, TensorId vector) {
  const Shape sample = layer.shape(layer.output(x));
  const std::int64_t channels = sample.back();
  const TensorId one = take_position(layer, reshaped(layer, x, {sample.count() / channels, channels}), 0);
  return layer.op(std::make_shared<PositionEmbedding>(false), {one, vector})[0];
}

}  // namespace trainctl
