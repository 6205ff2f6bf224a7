// Learning-rate schedules: pure functions of the step. Each schedule is defined in a file of this folder.
#pragma once

#include <cstdint>
#include <string>

#include "core/optim/choices.h"
#include "core/spec/values.h"

namespace trainctl {

// The progress of a run. A schedule depends on no other value.
struct ScheduleTime {
  std::int64_t step = 0;             // number of steps before this one
  std::int64_t steps_per_epoch = 1;  // number of steps of an epoch, including the step of a smaller last batch
  std::int64_t total_steps = 0;      // steps of the whole run; 0: unknown (the run ends by time)
};

// The options that all schedules share; one_cycle has no key `warmup`, since it begins with a rise of its own.
struct ScheduleOptions : Options {
  Duration warmup = Duration::steps(0);

  // The learning rate of a step. During the first W = warmup steps it rises linearly: (step + 1) / W times the
  // schedule's rate. Throws Error{config} if the schedule needs total_steps and total_steps is unknown.
  double learning_rate(double base, const ScheduleTime& time) const;
  // Whether the schedule needs total_steps.
  virtual bool needs_length() const { return false; }

 protected:
  // The rate without warm-up. `warmup` is the length of the warm-up in steps, for schedules that begin after it.
  virtual double rate(double base, const ScheduleTime& time, double warmup) const = 0;
};

// Converts a duration in steps or epochs to a number of steps, which may be fractional.
double steps_of(const Duration& duration, const ScheduleTime& time);

// Returns a warning if the run ends within the warm-up, so that the learning rate never reaches its full value; ""
// otherwise, or if total_steps is unknown.
std::string why_warmup_is_cut(const ScheduleOptions& options, const ScheduleTime& time);

}  // namespace trainctl
