// The learning rate has given values between given times, counted from the start of the run.
#include <cstddef>
#include <vector>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct PiecewiseSchedule final : ScheduleOptions {
  std::vector<Duration> boundaries;
  std::vector<double> values;  // one value more than boundaries

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;
};

// Whether each boundary is later than the earlier ones in the same unit; the number of steps of an epoch is unknown
// yet.
bool ascending(const std::vector<Duration>& boundaries) {
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (boundaries[j].unit == boundaries[i].unit && boundaries[j].amount >= boundaries[i].amount) return false;
    }
  }
  return true;
}

void check_piecewise(const PiecewiseSchedule& schedule, const Node& node, Reader& reader) {
  const std::size_t before = reader.count();
  for (const Duration& boundary : schedule.boundaries) check_steps(boundary, "boundaries", node, reader);
  if (reader.count() == before && !ascending(schedule.boundaries)) {
    reader.error(node.find("boundaries")->location, "boundaries must ascend");
  }
  if (schedule.values.size() != schedule.boundaries.size() + 1) {
    reader.error(node.find("values")->location,
                 format("there must be one value more than boundaries: {}, not {}",
                        counted(schedule.boundaries.size() + 1, "value"), schedule.values.size()));
  }
}

double PiecewiseSchedule::rate(double, const ScheduleTime& time, double) const {
  std::size_t passed = 0;
  for (const Duration& boundary : boundaries) passed += static_cast<double>(time.step) >= steps_of(boundary, time);
  return values[passed];
}

}  // namespace

Section piecewise_schedule() {
  return schedule_keys<PiecewiseSchedule>(
             "piecewise",
             "The learning rate has given values between given times, instead of the optimizer's learning rate.")
      .required("boundaries", &PiecewiseSchedule::boundaries,
                "Times of the changes, in steps or epochs: [80 epochs, 120 epochs]. A boundary of n steps is followed "
                "by step n, counted from 0, with the new value; in Keras, step n is the last one with the old value.")
      .required("values", &PiecewiseSchedule::values,
                "Learning rates before, between and after the boundaries: one value more than boundaries.", at_least(0))
      .check(check_piecewise);
}

}  // namespace trainctl
