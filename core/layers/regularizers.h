// The options of the penalties on a layer's parameters. Their keys are those of Keras.
#pragma once

#include "core/graph/tensor.h"
#include "core/spec/values.h"

namespace trainctl {

struct RegularizerOptions {
  double l1 = 0, l2 = 0;

  static Keys<RegularizerOptions> keys();
};

// The value of a key such as `kernel_regularizer`; empty if the config has none.
using RegularizerChoice = std::optional<RegularizerOptions>;
Penalty penalty_of(const RegularizerChoice& choice);

}  // namespace trainctl
