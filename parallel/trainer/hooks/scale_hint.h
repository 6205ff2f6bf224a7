// Warns after the first step of a run if its samples are most likely not scaled.
#pragma once

#include <cstdint>
#include <string>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

struct Program;

// What to do about a first loss that is far too high, for the kind of data that the program reads: images, tables,
// sequences of values or tokens.
std::string scale_advice(const Program& program);

// With inputs of 0 to 255, a network whose weights are initialized for values around 1 has logits in the hundreds.
class ScaleHint final : public TrainingHook {
 public:
  // `program`: a training program, whose loss of random guesses may be unknown, so that no warning is logged. `first`:
  // the largest step count that counts as the run's first step, since replicas may take several steps before their
  // results are combined.
  ScaleHint(const Program& program, std::int64_t first);

  void on_step_end(const TrainingState& state, double loss) override;

 private:
  double chance_loss_;
  std::string advice_;
  std::int64_t first_;
};

}  // namespace trainctl
