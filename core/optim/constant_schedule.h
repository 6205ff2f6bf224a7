// The learning rate stays as it is, after warm-up.
#pragma once

#include "core/optim/schedule.h"

namespace trainctl {

struct ConstantSchedule final : ScheduleOptions {
  static Keys<ConstantSchedule> keys();

 protected:
  double rate(double base, const ScheduleTime&, double) const override { return base; }
};

}  // namespace trainctl
