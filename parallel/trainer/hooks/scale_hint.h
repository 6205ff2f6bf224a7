// Warns after the first step of a run whose samples are most likely not scaled.
#pragma once

#include <cstdint>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

// Inputs of 0 to 255 give a network whose weights are made for values around 1 logits in the hundreds.
class ScaleHint final : public TrainingHook {
 public:
  // `chance_loss`: of a network that knows nothing; 0: not known, and nothing is said. `first`: the step count up to
  // which a step is the run's first one, since replicas may take several before their results are combined.
  ScaleHint(double chance_loss, std::int64_t first) : chance_loss_(chance_loss), first_(first) {}

  void on_step_end(const TrainingState& state, double loss) override;

 private:
  double chance_loss_;
  std::int64_t first_;
};

}  // namespace trainctl
