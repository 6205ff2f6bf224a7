// The penalties on a layer's parameters, under Keras' keys.
#pragma once

#include "core/graph/tensor.h"
#include "core/spec/values.h"

namespace trainctl {

struct RegularizerOptions {
  double l1 = 0, l2 = 0;

  static Keys<RegularizerOptions> keys();
};

// What `kernel_regularizer` and its like say; none where the config has none.
using RegularizerChoice = std::optional<RegularizerOptions>;
Penalty penalty_of(const RegularizerChoice& choice);

}  // namespace trainctl
