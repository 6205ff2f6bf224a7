// relu, leaky_relu, elu and softmax: Keras' layers for activations that have options.
#include <optional>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/layers/activations.h"
#include "core/layers/expression/layer_expression.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

Feature apply(Layer& layer, const Feature& input, const ActivationFunction& function) {
  return layer.output(layer.op(std::make_shared<Activation>(function), {input.tensor})[0]);
}

struct ActivationLayer : ChainedLayer {
  MaskUse mask_use() const override { return MaskUse::keeps; }
};

struct ReluOptions final : ActivationLayer {
  std::optional<double> max_value;
  double negative_slope = 0;
  double threshold = 0;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const bool is_limited = max_value.has_value();
    if (threshold == 0 && !is_limited) {
      if (negative_slope == 0) return apply(layer, inputs[0], {ActivationKind::relu});
      return apply(layer, inputs[0], {ActivationKind::leaky_relu, static_cast<float>(negative_slope)});
    }
    if (threshold == 0 && negative_slope == 0 && max_value == 6) {
      return apply(layer, inputs[0], {ActivationKind::relu6});
    }
    std::string text = "where(x <= threshold, 0, x)";
    if (is_limited) text = "minimum(" + text + ", max_value)";
    if (negative_slope != 0) text += " + negative_slope * minimum(x - threshold, 0)";
    return expand_expression(
        layer, inputs[0], text,
        {{"max_value", max_value.value_or(0)}, {"negative_slope", negative_slope}, {"threshold", threshold}});
  }
};

struct LeakyReluOptions final : ActivationLayer {
  double negative_slope = 0.3;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return apply(layer, inputs[0], {ActivationKind::leaky_relu, static_cast<float>(negative_slope)});
  }
};

struct EluOptions final : ActivationLayer {
  double alpha = 1;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    return apply(layer, inputs[0], {ActivationKind::elu, static_cast<float>(alpha)});
  }
};

struct SoftmaxOptions final : ActivationLayer {
  std::int64_t axis = -1;
  ActivationChoice activation{"softmax"};  // of the last dimension

  const Choice* final_activation() const override { return axis == -1 ? &activation : nullptr; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (axis == -1) return layer.output(layer.activate(inputs[0].tensor, activation));
    const std::int64_t rank = layer.shape(inputs[0]).rank() + 1;  // with the dimension of the samples
    if (axis == 0 || axis >= rank || axis <= -rank) {
      return layer.error(format("axis {} of input {}: the axes of a sample are 1 to {}, or -1 for the last", axis,
                                to_string(layer.shape(inputs[0])), rank - 1),
                         inputs[0]);
    }
    if (axis == rank - 1) {  // a loss would not know that the network ends in a softmax
      return layer.error(format("axis {} is the last one: write -1, the default", axis), inputs[0]);
    }
    return expand_expression(layer, inputs[0], "softmax(x, axis)", {{"axis", static_cast<double>(axis)}});
  }
};

}  // namespace

Section relu() {
  return layer_keys<ReluOptions>("relu",
                                 "max_value where x is more than that, x where it is more than threshold, else "
                                 "negative_slope * (x - threshold).")
      .key("max_value", &ReluOptions::max_value, "The largest value; none: no limit.", at_least(0))
      .key("negative_slope", &ReluOptions::negative_slope, "Slope below the threshold.", at_least(0))
      .key("threshold", &ReluOptions::threshold, "The value above which the output is x.", at_least(0));
}

Section leaky_relu() {
  return layer_keys<LeakyReluOptions>("leaky_relu", "x where it is positive, else negative_slope * x.")
      .key("negative_slope", &LeakyReluOptions::negative_slope, "Slope below zero.", at_least(0))
      .shorthand("negative_slope");
}

Section elu() {
  return layer_keys<EluOptions>("elu", "x where it is positive, else alpha * (exp(x) - 1).")
      .key("alpha", &EluOptions::alpha, "The negated limit of the function far below zero.", at_least(0))
      .shorthand("alpha");
}

Section softmax() {
  return layer_keys<SoftmaxOptions>("softmax", "exp(x) divided by its sum along a dimension.")
      .key("axis", &SoftmaxOptions::axis, "The dimension: 1 is the first one of a sample, -1 the last.")
      .shorthand("axis");
}

}  // namespace trainctl
