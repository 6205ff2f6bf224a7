// The learning rate falls from its full value behind the warm-up to a minimum at the end of the run, along half a
// cosine.
#pragma once

#include "core/optim/schedule.h"

namespace trainctl {

struct CosineSchedule final : ScheduleOptions {
  double minimum = 0;

  static Keys<CosineSchedule> keys();
  bool needs_length() const override { return true; }

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

}  // namespace trainctl
