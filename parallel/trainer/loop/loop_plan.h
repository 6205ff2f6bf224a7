// When the training loop does what, and what it watches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace trainctl {

// Which phase a run is in, from 0 on, and the step that it began with: early stopping may have ended those before.
struct PhaseStart {
  std::size_t number = 0;
  std::int64_t step = 0;

  bool operator==(const PhaseStart&) const = default;
};

// The metric that decides which checkpoint is the best one.
struct Monitor {
  std::string name;     // "val_accuracy"; empty: nothing is compared, the last checkpoint is the best
  bool maximum = true;  // greater is better
};

// When the loop does what. All counts are steps; 0 means never or no limit.
struct LoopPlan {
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 0;
  PhaseStart phase;            // with whose first step the optimizer and the schedule begin
  std::int64_t phase_end = 0;  // the phase's last step count, unless a hook ends it before
  std::size_t phases = 1;      // of the run
  double max_seconds = 0;
  std::int64_t checkpoint_every = 0;
  Monitor monitor;
  std::function<double(std::int64_t step)> learning_rate;  // of the schedule
};

}  // namespace trainctl
