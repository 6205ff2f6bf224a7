// The options of the moving average of weights.
#pragma once

#include "core/spec/keys.h"

namespace trainctl {

// As Keras' use_ema of its optimizers.
struct MovingAverageOptions {
  double momentum = 0.99;

  static Keys<MovingAverageOptions> keys();
};

}  // namespace trainctl
