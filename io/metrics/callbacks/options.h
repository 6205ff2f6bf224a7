// `log.callbacks`: commands that are run at events of a run.
#pragma once

#include <string>
#include <vector>

#include "core/spec/units.h"
#include "core/spec/values.h"

namespace trainctl {

struct CallbackOptions final : Options {
  std::string command;
  Seconds timeout{30};
};

// The events that can have callbacks: epoch, checkpoint, end.
const ChoiceTable& callback_choices();

// Returns the seconds that a run may wait for callbacks at its end: the longest of their timeouts, 0 without callbacks.
double seconds_at_end(const std::vector<Choice>& callbacks);

}  // namespace trainctl
