// Warns after the first step of a run if its samples are most likely not scaled.
#pragma once

#include <cstdint>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

// With inputs of 0 to 255, a network whose weights are initialized for values around 1 has logits in the hundreds.
class ScaleHint final : public TrainingHook {
 public:
  // `chance_loss`: the loss of random guesses; 0: unknown, so that no warning is logged. `first`: the largest step
  // count that counts as the run's first step, since replicas may take several steps before their results are combined.
  ScaleHint(double chance_loss, std::int64_t first) : chance_loss_(chance_loss), first_(first) {}

  void on_step_end(const TrainingState& state, double loss) override;

 private:
  double chance_loss_;
  std::int64_t first_;
};

}  // namespace trainctl
