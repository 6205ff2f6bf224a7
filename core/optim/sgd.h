// Stochastic gradient descent, with momentum and Nesterov's variant.
#pragma once

#include "core/optim/optimizer.h"

namespace trainctl {

struct SgdOptions final : OptimizerOptions {
  double momentum = 0;
  bool nesterov = false;

  SgdOptions() { learning_rate = 0.01; }
  std::vector<std::string> states() const override;
  std::shared_ptr<const OptimizerUpdate> update(std::vector<UpdateRange> ranges, double clip_norm) const override;

  static Keys<SgdOptions> keys();
};

}  // namespace trainctl
