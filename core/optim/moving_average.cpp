// The keys of the moving average.
#include "core/optim/moving_average.h"

#include "core/spec/values.h"

namespace trainctl {

Keys<MovingAverageOptions> MovingAverageOptions::keys() {
  return Keys<MovingAverageOptions>("moving_average",
                                    "An average of the weights over the steps, as Keras' use_ema (Polyak and Juditsky, "
                                    "1992). Validation, eval and predict use it, and weights.safetensors holds it; "
                                    "state.safetensors holds the weights of the last step, from which a resumed run "
                                    "continues. Running statistics of batch normalisation are not averaged.")
      .key("momentum", &MovingAverageOptions::momentum,
           "Keras' ema_momentum: average = momentum * average + (1 - momentum) * weight after every step; it starts "
           "with the weights of the first step.",
           from_zero_to_below(1))
      .shorthand("momentum");
}

}  // namespace trainctl
