// Learning-rate schedules: pure functions of the step. Each is one file beside this one.
#pragma once

#include <cstdint>

#include "core/spec/values.h"

namespace trainctl {

// Where a run stands: what a schedule may depend on.
struct ScheduleTime {
  std::int64_t step = 0;             // steps done before this one
  std::int64_t steps_per_epoch = 1;  // the last, smaller batch counted
  std::int64_t total_steps = 0;      // of the whole run; 0: not known (the run ends by time)
};

// Options that all schedules share.
struct ScheduleOptions : Options {
  Duration warmup = Duration::steps(0);

  // The learning rate of a step. During the first W = warmup steps it rises linearly, (step + 1) / W of what the
  // schedule gives. Throws Error{config} where the schedule needs total_steps and it is not known.
  double learning_rate(double base, const ScheduleTime& time) const;
  // Whether the schedule wants total_steps.
  virtual bool needs_length() const { return false; }

 protected:
  // The rate without warm-up, whose length in steps is given for schedules that begin behind it.
  virtual double rate(double base, const ScheduleTime& time, double warmup) const = 0;
};

// Steps of a duration that is no time; fractions stay.
double steps_of(const Duration& duration, const ScheduleTime& time);

// constant, step, cosine.
const ChoiceTable& schedule_choices();

}  // namespace trainctl
