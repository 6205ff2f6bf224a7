// The initializers that layers offer, by Keras' names.
#pragma once

#include "core/graph/graph.h"
#include "core/spec/values.h"

namespace trainctl {

struct InitializerOptions : Options {
  double value = 0;
  double mean = 0;
  double stddev = 0.05;
  double minval = -0.05;
  double maxval = 0.05;
};

const ChoiceTable& initializer_choices();
using InitializerChoice = ChoiceOf<initializer_choices>;

// The initializer of a parameter of this shape: (in, out), (height, width, in, out), or (channels).
Initializer make_initializer(const Choice& choice, const Shape& shape);

}  // namespace trainctl
