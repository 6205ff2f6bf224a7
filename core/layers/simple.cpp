// The layers activation and flatten.
#include "core/layers/simple.h"

#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {

Keys<ActivationLayerOptions> ActivationLayerOptions::keys() {
  return layer_keys<ActivationLayerOptions>("activation", "An activation as a layer of its own.")
      .flattened("activation", &ActivationLayerOptions::activation, "The function.")
      .shorthand("activation");
}

Feature ActivationLayerOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  return layer.output(layer.activate(inputs[0].tensor, activation));
}

Keys<FlattenOptions> FlattenOptions::keys() {
  return layer_keys<FlattenOptions>("flatten", "Flattens each sample to a vector, row by row.");
}

Feature FlattenOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape x = layer.shape(inputs[0]);
  const TensorId tensor = inputs[0].tensor;
  if (x.rank() == 1) return layer.output(tensor);
  return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of({x.count()})), {tensor})[0]);
}

}  // namespace trainctl
