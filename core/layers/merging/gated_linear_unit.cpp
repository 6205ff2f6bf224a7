// gated_linear_unit: the product of one layer's output and an activation of another one's.
#include "core/graph/ops/elementwise/gated_linear_unit.h"

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/layers/activations.h"
#include "core/layers/merging/merging.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct GatedLinearUnitOptions final : MergingLayer {
  ActivationChoice activation{"sigmoid"};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Feature &gate = inputs[0], &up = inputs[1];
    if (activation.name == "softmax") {
      return layer.error("the activation softmax is not element-wise: use sigmoid, silu, gelu or relu", gate);
    }
    if (!activation_expression(activation).empty()) {
      return layer.error(format("the activation {} is not supported: use sigmoid, silu, gelu or relu", activation.name),
                         gate);
    }
    if (layer.shape(gate) != layer.shape(up)) {
      return layer.error(format("{} of '{}' and {} of '{}' are different shapes", to_string(layer.shape(gate)),
                                gate.layer, to_string(layer.shape(up)), up.layer),
                         up);
    }
    const auto unit = std::make_shared<GatedLinearUnit>(activation_function(activation));
    return layer.output(layer.op(unit, {gate.tensor, up.tensor})[0]);
  }
};

void check_gate_and_up(const GatedLinearUnitOptions& options, const Node& node, Reader& reader) {
  if (options.from.size() == 2) return;
  reader.error(node.find("from")->location, format("from names {}, but a gated linear unit needs two: [gate, up]",
                                                   counted(options.from.size(), "layer")));
}

}  // namespace

Section gated_linear_unit() {
  using O = GatedLinearUnitOptions;
  return layer_keys<O>("gated_linear_unit",
                       "activation(gate) * up, for two layers `from: [gate, up]` of equal shape, usually dense layers. "
                       "With silu it is SwiGLU, with gelu GeGLU; Dauphin et al. (2017), Shazeer (2020).")
      .key("activation", &O::activation, "Activation of the gate.")
      .check(check_gate_and_up);
}

}  // namespace trainctl
