// The learning rate falls to a minimum after the warm-up, as a power of the remaining time.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct PolynomialSchedule final : ScheduleOptions {
  std::optional<Duration> decay_steps;  // none: to the end of the run
  double power = 1;
  double minimum = 0;
  bool cycle = false;

  bool needs_length() const override { return !decay_steps; }

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

void check_polynomial(const PolynomialSchedule& schedule, const Node& node, Reader& reader) {
  if (schedule.decay_steps) check_steps(*schedule.decay_steps, "decay_steps", node, reader);
  if (schedule.cycle && !schedule.decay_steps) {
    reader.error(node.find("cycle")->location, "cycle needs decay_steps, the length of the first fall");
  }
}

double PolynomialSchedule::rate(double base, const ScheduleTime& time, double warmup) const {
  const double step = std::max(static_cast<double>(time.step) - warmup, 0.0);
  double length = decay_steps ? steps_of(*decay_steps, time) : std::max(steps_of_run(time, "polynomial") - warmup, 1.0);
  if (cycle) length *= std::max(std::ceil(step / length), 1.0);
  return minimum + (base - minimum) * std::pow(1 - std::min(step / length, 1.0), power);
}

}  // namespace

Section polynomial_schedule() {
  return schedule_keys<PolynomialSchedule>(
             "polynomial",
             "After warm-up the learning rate falls to a minimum, linearly or as another power of the remaining time.")
      .key("decay_steps", &PolynomialSchedule::decay_steps,
           "Length of the fall, in steps or epochs; none: until the end of the run.", more_than(0))
      .key("power", &PolynomialSchedule::power, "Exponent of the remaining share of the time.", more_than(0))
      .key("minimum", &PolynomialSchedule::minimum, "Learning rate at the end (Keras: end_learning_rate).", at_least(0))
      .key("cycle", &PolynomialSchedule::cycle,
           "Whether the learning rate rises again at each multiple of decay_steps, and falls until the next one.")
      .check(check_polynomial);
}

}  // namespace trainctl
