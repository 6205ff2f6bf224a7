// Warm-up, and the table of schedules.
#include "core/optim/schedule.h"

#include "core/base/format.h"
#include "core/optim/choices.h"
#include "core/optim/schedule_keys.h"

namespace trainctl {

double steps_of(const Duration& duration, const ScheduleTime& time) {
  require(duration.unit != Duration::Unit::seconds, "a duration of a schedule is in units of time");
  const double unit = duration.unit == Duration::Unit::epochs ? static_cast<double>(time.steps_per_epoch) : 1.0;
  return duration.amount * unit;
}

double ScheduleOptions::learning_rate(double base, const ScheduleTime& time) const {
  const double steps = steps_of(warmup, time);
  const double share = static_cast<double>(time.step + 1) / steps;
  const double scheduled = rate(base, time, steps);
  return steps > 0 && share < 1 ? share * scheduled : scheduled;
}

std::string why_warmup_is_cut(const ScheduleOptions& options, const ScheduleTime& time) {
  const double warmup = steps_of(options.warmup, time);
  if (time.total_steps == 0 || warmup <= static_cast<double>(time.total_steps)) return "";
  return format(
      "schedule.warmup is {:.6g} steps, but the run has {}: it ends before the learning rate reaches its full value",
      warmup, time.total_steps);
}

const ChoiceTable& schedule_choices() {
  static const ChoiceTable table{
      "schedule",
      {constant_schedule(), step_schedule(), piecewise_schedule(), exponential_schedule(), polynomial_schedule(),
       cosine_schedule(), inverse_sqrt_schedule(), one_cycle_schedule()}};
  return table;
}

}  // namespace trainctl
