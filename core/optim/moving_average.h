// The options of the moving average of weights.
#pragma once

#include "core/spec/keys.h"

namespace trainctl {

// The moving average corresponds to use_ema of Keras' optimizers.
struct MovingAverageOptions {
  double momentum = 0.99;

  static Keys<MovingAverageOptions> keys();
};

}  // namespace trainctl
