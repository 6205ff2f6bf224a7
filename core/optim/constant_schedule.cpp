// The learning rate is constant after warm-up.
#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct ConstantSchedule final : ScheduleOptions {
 protected:
  double rate(double base, const ScheduleTime&, double) const override { return base; }
};

}  // namespace

Section constant_schedule() { return schedule_keys<ConstantSchedule>("constant", "The learning rate is constant."); }

}  // namespace trainctl
