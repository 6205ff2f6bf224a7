// The learning rate falls along half a cosine, from its full value after the warm-up to a minimum at the end of the
// run.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct CosineSchedule final : ScheduleOptions {
  double minimum = 0;

  bool needs_length() const override { return true; }

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

double CosineSchedule::rate(double base, const ScheduleTime& time, double warmup) const {
  const double length = steps_of_run(time, "cosine") - warmup;
  const double done = (static_cast<double>(time.step) - warmup) / std::max(length, 1.0);
  return minimum + (base - minimum) * 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(done, 0.0, 1.0)));
}

}  // namespace

Section cosine_schedule() {
  return schedule_keys<CosineSchedule>(
             "cosine", "After warm-up the learning rate falls along half a cosine until the end of the run.")
      .key("minimum", &CosineSchedule::minimum, "Learning rate at the end of the run.", at_least(0));
}

}  // namespace trainctl
