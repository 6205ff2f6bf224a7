// The sections of all schedules, and the keys that all schedules share.
#pragma once

#include <string>
#include <utility>

#include "core/optim/schedule.h"

namespace trainctl {

// Each schedule is defined in a file of its own.
Section constant_schedule();
Section step_schedule();
Section piecewise_schedule();
Section exponential_schedule();
Section polynomial_schedule();
Section cosine_schedule();
Section inverse_sqrt_schedule();
Section one_cycle_schedule();

// Reports an error if the duration is negative or in units of time, since a schedule is a function of the step.
void check_steps(const Duration& duration, const char* key, const Node& node, Reader& reader);

// The number of steps of the whole run. Throws Error{config} if it is unknown; `schedule` is the schedule's name.
double steps_of_run(const ScheduleTime& time, const char* schedule);

template <class T>
Keys<T> schedule_keys(std::string name, std::string meaning) {
  return Keys<T>(std::move(name), std::move(meaning))
      .key("warmup", &T::warmup,
           "Length of the linear rise of the learning rate from zero at the beginning, in steps or epochs.")
      .check([](const T& options, const Node& node, Reader& reader) {
        check_steps(options.warmup, "warmup", node, reader);
      });
}

}  // namespace trainctl
