// `log.callbacks`: commands that are run when something happens in a run.
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

// The events that have callbacks: epoch, checkpoint, end.
const ChoiceTable& callback_choices();

// Seconds that a run may wait for callbacks at its end: the longest of their timeouts, 0 without any.
double seconds_at_end(const std::vector<Choice>& callbacks);

}  // namespace trainctl
