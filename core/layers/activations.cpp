// The table of activations.
#include "core/layers/activations.h"

namespace trainctl {
namespace {

Section plain(std::string name, std::string meaning) {
  return Keys<ActivationOptions>(std::move(name), std::move(meaning));
}

}  // namespace

const ChoiceTable& activation_choices() {
  static const ChoiceTable table{
      "activation",
      {
          plain("linear", "No activation."),
          plain("relu", "max(x, 0)."),
          Keys<ActivationOptions>("leaky_relu", "x where it is positive, else negative_slope * x.")
              .key("negative_slope", &ActivationOptions::negative_slope, "Slope below zero.", at_least(0)),
          plain("gelu", "x times the normal distribution function of x, the exact one."),
          plain("silu", "x * sigmoid(x)."),
          plain("tanh", "Hyperbolic tangent."),
          plain("sigmoid", "1 / (1 + exp(-x))."),
          plain("softmax", "exp(x) over its sum along the last dimension."),
      }};
  return table;
}

ActivationFunction activation_function(const Choice& activation) {
  for (ActivationKind kind : {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::gelu,
                              ActivationKind::silu, ActivationKind::tanh, ActivationKind::sigmoid}) {
    if (activation.name != name_of(kind)) continue;
    ActivationFunction function{kind};
    if (kind == ActivationKind::leaky_relu) {
      function.slope = static_cast<float>(activation.as<ActivationOptions>().negative_slope);
    }
    return function;
  }
  return {};
}

FinalActivation final_activation_of(const Choice& activation) {
  if (activation.name == "softmax") return FinalActivation::softmax;
  if (activation.name == "sigmoid") return FinalActivation::sigmoid;
  return FinalActivation::none;
}

}  // namespace trainctl
