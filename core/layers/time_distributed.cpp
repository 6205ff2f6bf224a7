// time_distributed: the same layers for each step of a sequence. repeat_vector: a sequence of equal vectors.
#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/images.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct TimeDistributedOptions final : ChainedLayer {
  LayerList layers;

  // The steps of all samples become samples, and their outputs become steps again.
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape whole = layer.type(inputs[0]).shape;
    if (whole.rank() < 3) {
      return layer.error(format("input {} is not a sequence (steps, ...)", to_string(layer.shape(inputs[0]))),
                         inputs[0]);
    }
    if (inputs[0].masked() && layer.shape(layer.output(inputs[0].mask)).rank() > 1) {
      return layer.error(
          "the input has a padding mask within its steps, which the layers cannot read: leave mask_zero out",
          inputs[0]);
    }
    const std::vector<std::int64_t>& sizes = whole.sizes();
    const Shape step(std::vector<std::int64_t>(sizes.begin() + 2, sizes.end()));
    const TensorId apart = layer.op(std::make_shared<Reshape>(step.with_front(checked_multiply(whole[0], whole[1]))),
                                    {inputs[0].tensor})[0];
    const Feature y = layer.expand_for_steps(layers, layer.output(apart), whole[1]);
    if (!y.known()) return {};
    const Shape joined = layer.type(y).shape.without_front().with_front(whole[1]).with_front(whole[0]);
    return layer.output(layer.op(std::make_shared<Reshape>(joined), {y.tensor})[0]);
  }
  MaskUse mask_use() const override { return MaskUse::keeps; }
  const Choice* final_activation() const override {
    return layers.empty() ? nullptr : layers.back().as<LayerOptions>().final_activation();
  }
};

void check_layers(const TimeDistributedOptions& options, const Node& node, Reader& reader) {
  if (options.layers.empty()) reader.error(node.find("layers")->location, "layers is empty");
}

struct RepeatVectorOptions final : ChainedLayer {
  std::int64_t n = 1;

  // A vector is an image of one pixel, which becomes n pixels wide.
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape x = layer.shape(inputs[0]);
    if (x.rank() != 1) return layer.error(format("input {} is not a vector", to_string(x)), inputs[0]);
    const TensorId pixel = layer.op(std::make_shared<Reshape>(layer.batch_of({1, 1, x[0]})), {inputs[0].tensor})[0];
    const auto widen = std::make_shared<Upsample2d>(Size2d{1, n}, Interpolation::nearest);
    const TensorId pixels = layer.op(widen, {pixel})[0];
    return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of({n, x[0]})), {pixels})[0]);
  }
};

}  // namespace

Section time_distributed() {
  using O = TimeDistributedOptions;
  return layer_keys<O>("time_distributed",
                       "Applies layers to each step of a sequence (steps, ...), such as a conv2d to each image of a "
                       "film, with the same weights for all steps.")
      .required(
          "layers", &O::layers,
          "The layers, which read a step of a sample. Of the layers with random numbers, those that change each value "
          "alone may be among them: dropout without noise_shape, gaussian_noise, gaussian_dropout and "
          "alpha_dropout. Attention and batch_normalization may not.")
      .check(check_layers);
}

Section repeat_vector() {
  using O = RepeatVectorOptions;
  return layer_keys<O>("repeat_vector", "Repeats a vector (features): a sequence (n, features) of equal steps.")
      .required("n", &O::n, "Number of steps.", between(1, 1 << 20))
      .shorthand("n");
}

}  // namespace trainctl
