// The layers activation and flatten, which have one input and no parameters.
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/activations.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct ActivationLayerOptions final : ChainedLayer {
  ActivationChoice activation;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return layer.output(layer.activate(inputs[0].tensor, activation));
  }
  MaskUse mask_use() const override { return MaskUse::keeps; }
  const Choice* final_activation() const override { return &activation; }
};

struct FlattenOptions final : ChainedLayer {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape x = layer.shape(inputs[0]);
    const TensorId tensor = inputs[0].tensor;
    if (x.rank() == 1) return layer.output(tensor);
    return layer.output(layer.op(std::make_shared<Reshape>(layer.batch_of({x.count()})), {tensor})[0]);
  }
};

}  // namespace

Section activation() {
  using O = ActivationLayerOptions;
  return layer_keys<O>("activation", "An activation as a layer of its own.")
      .flattened("activation", &O::activation, "The function.")
      .shorthand("activation");
}

Section flatten() { return layer_keys<FlattenOptions>("flatten", "Flattens each sample to a vector, row by row."); }

}  // namespace trainctl
