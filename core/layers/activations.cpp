// The table of activations.
#include "core/layers/activations.h"

namespace trainctl {
namespace {

Keys<ActivationOptions> plain(std::string name, std::string meaning) {
  return Keys<ActivationOptions>(std::move(name), std::move(meaning));
}

// Activations that are expressions of functions (expression/functions.cpp).
struct Composed {
  const char *name, *meaning, *expression;
};

constexpr Composed composed[] = {
    {"celu", "x where it is positive, else exp(x) - 1, with a continuous gradient.", "celu(x)"},
    {"exponential", "exp(x).", "exp(x)"},
    {"glu", "The first half of the last dimension times the sigmoid of the second half.", "glu(x)"},
    {"hard_shrink", "x where it is below -0.5 or above 0.5, else 0.", "hard_shrink(x)"},
    {"hard_tanh", "x, clipped to the range from -1 to 1.", "hard_tanh(x)"},
    {"log_sigmoid", "log(sigmoid(x)).", "log_sigmoid(x)"},
    {"log_softmax", "The logarithm of softmax.", "log_softmax(x)"},
    {"soft_shrink", "x - 0.5 where x is above 0.5, x + 0.5 where it is below -0.5, else 0.", "soft_shrink(x)"},
    {"softsign", "x / (1 + abs(x)).", "softsign(x)"},
    {"sparse_plus", "0 up to -1, (x + 1)^2 / 4 up to 1, then x.", "sparse_plus(x)"},
    {"sparse_sigmoid", "(x + 1) / 2, clipped to the range from 0 to 1.", "sparse_sigmoid(x)"},
    {"squareplus", "(x + sqrt(x^2 + 4)) / 2.", "squareplus(x)"},
    {"tanh_shrink", "x - tanh(x).", "tanh_shrink(x)"},
};

ChoiceTable with_composed(ChoiceTable table) {
  for (const Composed& each : composed) table.choices.push_back(plain(each.name, each.meaning));
  return table;
}

}  // namespace

const ChoiceTable& activation_choices() {
  static const ChoiceTable table = with_composed(
      {"activation",
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
       }});
  return table;
}

std::string_view activation_expression(const Choice& activation) {
  for (const Composed& each : composed) {
    if (activation.name == each.name) return each.expression;
  }
  return "";
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
