// The learning rate falls exponentially after the warm-up.
#include <algorithm>
#include <cmath>

#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct ExponentialSchedule final : ScheduleOptions {
  Duration decay_steps;
  double decay_rate = 0;
  bool staircase = false;

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

double ExponentialSchedule::rate(double base, const ScheduleTime& time, double warmup) const {
  const double intervals = std::max(static_cast<double>(time.step) - warmup, 0.0) / steps_of(decay_steps, time);
  return base * std::pow(decay_rate, staircase ? std::floor(intervals) : intervals);
}

}  // namespace

Section exponential_schedule() {
  return schedule_keys<ExponentialSchedule>("exponential",
                                            "After warm-up the learning rate falls exponentially: by the factor "
                                            "decay_rate in each interval of decay_steps.")
      .required("decay_steps", &ExponentialSchedule::decay_steps, "Length of an interval, in steps or epochs.",
                more_than(0))
      .required("decay_rate", &ExponentialSchedule::decay_rate, "Factor of the learning rate in each interval.",
                more_than(0))
      .key("staircase", &ExponentialSchedule::staircase,
           "Whether the learning rate falls at the end of each interval instead of continuously.")
      .check([](const ExponentialSchedule& schedule, const Node& node, Reader& reader) {
        check_steps(schedule.decay_steps, "decay_steps", node, reader);
      });
}

}  // namespace trainctl
