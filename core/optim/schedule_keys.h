// The schedules that there are, and the keys that they share.
#pragma once

#include <string>
#include <utility>

#include "core/optim/schedule.h"

namespace trainctl {

// A file for each.
Section constant_schedule();
Section step_schedule();
Section cosine_schedule();

// Reports a duration that is a time or negative: a schedule is a function of the step.
void check_steps(const Duration& duration, const char* key, const Node& node, Reader& reader);

template <class T>
Keys<T> schedule_keys(std::string name, std::string meaning) {
  return Keys<T>(std::move(name), std::move(meaning))
      .key("warmup", &T::warmup, "How long the learning rate first rises linearly from zero, in steps or epochs.")
      .check([](const T& options, const Node& node, Reader& reader) {
        check_steps(options.warmup, "warmup", node, reader);
      });
}

}  // namespace trainctl
