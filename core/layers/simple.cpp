// The layers dropout, activation and flatten.
#include "core/layers/simple.h"

#include "core/base/random.h"
#include "core/graph/ops/dropout.h"
#include "core/graph/ops/shaping.h"

namespace trainctl {

Keys<DropoutOptions> DropoutOptions::keys() {
  return layer_keys<DropoutOptions>("dropout", "In training, zeroes values at random and scales up the others.")
      .required("rate", &DropoutOptions::rate, "Share of values that become zero.", from_zero_to_below(1))
      .shorthand("rate");
}

Feature DropoutOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  TensorId y = inputs[0].tensor;
  if (layer.training() && rate > 0) {
    std::vector<TensorId> operands = layer.dropout_inputs();
    operands.insert(operands.begin(), y);
    y = layer.op(std::make_shared<Dropout>(static_cast<float>(rate), layer.seed(), name_hash(layer.path())),
                 operands)[0];
  }
  return layer.output(y);
}

Keys<ActivationLayerOptions> ActivationLayerOptions::keys() {
  return layer_keys<ActivationLayerOptions>("activation", "An activation as a layer of its own.")
      .flattened("activation", &ActivationLayerOptions::activation, "The function.")
      .shorthand("activation");
}

Feature ActivationLayerOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  return layer.output(layer.activate(inputs[0].tensor, activation));
}

Keys<FlattenOptions> FlattenOptions::keys() {
  return layer_keys<FlattenOptions>("flatten", "Each sample as a vector, row by row.");
}

Feature FlattenOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape x = layer.shape(inputs[0]);
  const TensorId tensor = inputs[0].tensor;
  if (x.rank() == 1) return layer.output(tensor);
  return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of({x.count()})), {tensor})[0]);
}

}  // namespace trainctl
