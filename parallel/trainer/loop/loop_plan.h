// The settings of the training loop: intervals, limits and the monitored metric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace trainctl {

// The number of a run's current phase, from 0, and the step count at which it began; early stopping may have ended
// earlier phases.
struct PhaseStart {
  std::size_t number = 0;
  std::int64_t step = 0;

  bool operator==(const PhaseStart&) const = default;
};

// The metric that decides which checkpoint is the best one.
struct Monitor {
  std::string name;     // for example "val_accuracy"; empty: no values are compared, the last checkpoint is the best
  bool maximum = true;  // whether greater is better
};

// Intervals and limits of the loop. All counts are steps; 0 means never or no limit.
struct LoopPlan {
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 0;
  PhaseStart phase;            // current phase; the optimizer and the schedule begin at its first step
  std::int64_t phase_end = 0;  // the step count at which the phase ends, unless a hook ends it earlier
  std::size_t phases = 1;      // number of phases of the run
  double max_seconds = 0;
  std::int64_t checkpoint_every = 0;
  // With checkpoint.every: auto: the mean time between failures of the whole run, in seconds; checkpoint_every is then
  // 0. 0 otherwise.
  double time_between_failures = 0;
  std::int64_t memory_every = 0;  // interval of copies in shared memory
  Monitor monitor;
  std::function<double(std::int64_t step)> learning_rate;  // the schedule's learning rate
};

}  // namespace trainctl
