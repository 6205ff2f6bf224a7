// Checks inputs of layers over images and sequences, and reshapes sequences.
#include "core/layers/images.h"

#include "core/base/format.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {

bool is_image(Layer& layer, const Feature& input) {
  const Shape x = layer.shape(input);
  if (x.rank() == 3) return true;
  layer.error(format("input {} is not an image (height, width, channels)", to_string(x)), input);
  return false;
}

bool is_sequence(Layer& layer, const Feature& input) {
  const Shape x = layer.shape(input);
  if (x.rank() == 2) return true;
  layer.error(format("input {} is not a sequence (steps, channels)", to_string(x)), input);
  return false;
}

bool holds_tokens(Layer& layer, const Feature& input) {
  if (layer.type(input).dtype == DType::int32) return true;
  layer.error(format("input {} holds values, not tokens: store them as whole numbers", to_string(layer.shape(input))),
              input);
  return false;
}

TensorId as_images(Layer& layer, const Feature& sequences) {
  const Shape images = layer.batch_of(layer.shape(sequences).with_front(1));
  return layer.op(std::make_shared<Reshape>(images), {sequences.tensor})[0];
}

TensorId as_sequences(Layer& layer, TensorId images) {
  const Shape x = layer.shape(layer.output(images));
  return layer.op(std::make_shared<Reshape>(layer.batch_of({x[1], x[2]})), {images})[0];
}

}  // namespace trainctl
