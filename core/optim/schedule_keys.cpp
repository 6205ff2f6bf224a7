// Checks that schedules share.
#include "core/optim/schedule_keys.h"

#include "core/base/format.h"

namespace trainctl {

void check_steps(const Duration& duration, const char* key, const Node& node, Reader& reader) {
  if (duration.unit != Duration::Unit::seconds && duration.amount >= 0) return;
  const Node* value = node.find(key);
  reader.error(value ? value->location : node.location,
               format("{} must be a number of steps or epochs, not '{}'", key, to_string(duration)));
}

double steps_of_run(const ScheduleTime& time, const char* schedule) {
  if (time.total_steps > 0) return static_cast<double>(time.total_steps);
  throw Error(ErrorKind::config, format("the {} schedule needs to know how many steps the run has", schedule),
              "set epochs or max_steps, with or without max_time");
}

}  // namespace trainctl
