// class_token: a learned vector before the positions of a sequence, parameter token (1, channels). take_position: the
// vector of one position.
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/broadcast.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct ClassTokenOptions final : ChainedLayer {
  InitializerChoice initializer{"zeros"};

  // The ops join tensors along the last dimension only. Therefore each sample becomes one row of all its positions.
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    if (inputs[0].masked()) {
      return layer.error("its input has a padding mask, which has no place for the class token", inputs[0]);
    }
    const Shape x = layer.shape(inputs[0]), vector{1, x[1]};
    const auto reshape = [&](TensorId tensor, const Shape& sample) {
      return layer.op(std::make_shared<Reshape>(layer.batch_of(sample)), {tensor})[0];
    };
    const TensorId token = layer.parameter("token", vector, make_initializer(initializer, vector), false);
    const TensorId tokens = reshape(repeat_for_samples(layer, inputs[0].tensor, token), {x[1]});
    const TensorId positions = reshape(inputs[0].tensor, {x.count()});
    const TensorId joined = layer.op(std::make_shared<Concatenate>(), {tokens, positions})[0];
    return layer.output(reshape(joined, {x[0] + 1, x[1]}));
  }
};

struct TakePositionOptions final : ChainedLayer {
  std::int64_t index = 0;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    const std::int64_t position = index < 0 ? x[0] + index : index;
    if (position < 0 || position >= x[0]) {
      return layer.error(format("index {} is not a position of an input with {}", index, counted(x[0], "position")),
                         inputs[0]);
    }
    const TensorId taken = take_position(layer, inputs[0].tensor, position);
    return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of({x[1]})), {taken})[0]);
  }
};

}  // namespace

Section class_token() {
  using O = ClassTokenOptions;
  return layer_keys<O>("class_token",
                       "Puts a learned vector, the same for all samples, before the first position of a sequence "
                       "(positions, channels); Dosovitskiy et al. (2021).")
      .key("initializer", &O::initializer, "Initial values of the vector.");
}

Section take_position() {
  using O = TakePositionOptions;
  return layer_keys<O>("take_position", "The vector (channels) of one position of a sequence (positions, channels).")
      .key("index", &O::index, "Number of the position, counted from 0; negative numbers count from the end.")
      .shorthand("index");
}

}  // namespace trainctl
