// The learning rate falls by a factor at given times, counted from the start of the run.
#include <cmath>
#include <optional>
#include <vector>

#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct StepSchedule final : ScheduleOptions {
  std::optional<Duration> every;     // the rate falls after each interval of this length,
  std::vector<Duration> boundaries;  // or at each of these times
  double factor = 0.1;

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

void check_step(const StepSchedule& schedule, const Node& node, Reader& reader) {
  if (schedule.every.has_value() == !schedule.boundaries.empty()) {
    reader.error(node.location, "step needs either every or boundaries, the times at which the learning rate falls");
  }
  if (schedule.every) check_steps(*schedule.every, "every", node, reader);
  if (schedule.every && schedule.every->amount == 0) reader.error(node.location, "every must be more than 0");
  for (const Duration& boundary : schedule.boundaries) check_steps(boundary, "boundaries", node, reader);
}

double StepSchedule::rate(double base, const ScheduleTime& time, double) const {
  const auto step = static_cast<double>(time.step);
  double falls = every ? std::floor(step / steps_of(*every, time)) : 0;
  for (const Duration& boundary : boundaries) falls += step >= steps_of(boundary, time);
  return base * std::pow(factor, falls);
}

}  // namespace

Section step_schedule() {
  return schedule_keys<StepSchedule>("step",
                                     "The learning rate falls by a factor, at equal intervals or at given times.")
      .key("every", &StepSchedule::every, "Length of the interval between falls, in steps or epochs.")
      .key("boundaries", &StepSchedule::boundaries, "Times of the falls, in steps or epochs: [80 epochs, 120 epochs].")
      .key("factor", &StepSchedule::factor, "Factor of the learning rate at each fall.", more_than(0))
      .check(check_step);
}

}  // namespace trainctl
