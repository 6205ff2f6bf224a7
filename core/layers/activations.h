// The activations that layers offer, by Keras' names.
#pragma once

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

// Returns the function of an element-wise activation. Its kind is none for linear, and for softmax, which is not
// element-wise.
ActivationFunction activation_function(const Choice& activation);

// Returns the activation that a loss may take over from the end of an output: softmax, sigmoid or none.
FinalActivation final_activation_of(const Choice& activation);

}  // namespace trainctl
