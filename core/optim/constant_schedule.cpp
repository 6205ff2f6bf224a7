// The constant schedule's keys.
#include "core/optim/constant_schedule.h"

#include "core/optim/schedule_keys.h"

namespace trainctl {

Keys<ConstantSchedule> ConstantSchedule::keys() {
  return schedule_keys<ConstantSchedule>("constant", "The learning rate stays as it is.");
}

}  // namespace trainctl
