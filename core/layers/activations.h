// The activations that layers offer, by Keras' names.
#pragma once

#include <string_view>

#include "core/graph/ops/elementwise/activations.h"
#include "core/layers/model/model.h"
#include "core/spec/values.h"

namespace trainctl {

struct ActivationOptions : Options {
  double negative_slope = 0.3;  // read by leaky_relu only
  double alpha = 1;             // read by elu only
  bool approximate = false;     // read by gelu only
};

// The table of activations.
const ChoiceTable& activation_choices();
using ActivationChoice = ChoiceOf<activation_choices>;

// Returns the function of an activation that is an element-wise op. Its kind is none for linear, for softmax, which is
// not element-wise, and for those that are expressions.
ActivationFunction activation_function(const Choice& activation);

// Returns the expression of x that computes an activation, for those that have no op of their own; "" for the others.
std::string_view activation_expression(const Choice& activation);

// Returns the activation that a loss may take over from the end of an output: softmax, sigmoid or none.
FinalActivation final_activation_of(const Choice& activation);

}  // namespace trainctl
