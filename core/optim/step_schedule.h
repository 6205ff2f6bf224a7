// The learning rate falls by a factor at given times, counted from the start of the run.
#pragma once

#include <optional>
#include <vector>

#include "core/optim/schedule.h"

namespace trainctl {

struct StepSchedule final : ScheduleOptions {
  std::optional<Duration> every;     // falls again and again: this ...
  std::vector<Duration> boundaries;  // ... or at each of these
  double factor = 0.1;

  static Keys<StepSchedule> keys();

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

}  // namespace trainctl
