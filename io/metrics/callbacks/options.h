// `log.callbacks`: commands that are run when something happens in a run.
#pragma once

#include <string>

#include "core/spec/units.h"
#include "core/spec/values.h"

namespace trainctl {

struct CallbackOptions final : Options {
  std::string command;
  Seconds timeout{30};
};

// The events that have callbacks: epoch, checkpoint, end.
const ChoiceTable& callback_choices();

}  // namespace trainctl
