// The table of activations.
#include "core/layers/activations.h"

namespace trainctl {
namespace {

Keys<ActivationOptions> plain(std::string name, std::string meaning) {
  return Keys<ActivationOptions>(std::move(name), std::move(meaning));
}

}  // namespace

const ChoiceTable& activation_choices() {
  static const ChoiceTable table{
      "activation",
      {
          plain("linear", "No activation."),
          plain("relu", "max(x, 0)."),
          plain("relu6", "x, clipped to the range from 0 to 6."),
          Keys<ActivationOptions>("leaky_relu", "x where it is positive, else negative_slope * x.")
              .key("negative_slope", &ActivationOptions::negative_slope, "Slope below zero.", at_least(0)),
          Keys<ActivationOptions>("elu", "x where it is positive, else alpha * (exp(x) - 1).")
              .key("alpha", &ActivationOptions::alpha, "The negated limit of the function far below zero.",
                   at_least(0)),
          plain("selu", "1.0507 * x where x is positive, else 1.7581 * (exp(x) - 1); use it with lecun_normal."),
          Keys<ActivationOptions>("gelu",
                                  "x times the cumulative distribution function of the standard normal distribution.")
              .key("approximate", &ActivationOptions::approximate,
                   "Whether the function is approximated by tanh, as in GPT-2 and Gemma."),
          plain("silu", "x * sigmoid(x).").alias("swish"),
          plain("mish", "x * tanh(softplus(x))."),
          plain("hard_swish", "x * hard_sigmoid(x).").alias("hard_silu"),
          plain("tanh", "Hyperbolic tangent."),
          plain("sigmoid", "1 / (1 + exp(-x))."),
          plain("hard_sigmoid", "x / 6 + 1 / 2, clipped to the range from 0 to 1."),
          plain("softplus", "log(1 + exp(x))."),
          plain("softmax", "exp(x) divided by its sum along the last dimension."),
      }};
  return table;
}

ActivationFunction activation_function(const Choice& activation) {
  for (const ActivationKind kind : activation_kinds) {
    if (activation.name != name_of(kind)) continue;
    ActivationFunction function{kind};
    const auto& options = activation.as<ActivationOptions>();
    if (kind == ActivationKind::gelu && options.approximate) function.kind = ActivationKind::gelu_tanh;
    if (kind == ActivationKind::leaky_relu) function.slope = static_cast<float>(options.negative_slope);
    if (kind == ActivationKind::elu) function.slope = static_cast<float>(options.alpha);
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
