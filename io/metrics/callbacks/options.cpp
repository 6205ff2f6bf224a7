// The keys of callbacks.
#include "io/metrics/callbacks/options.h"

#include <algorithm>

#include "core/spec/keys.h"

namespace trainctl {
namespace {

Section callback(const std::string& event, const std::string& meaning) {
  return Keys<CallbackOptions>(event, meaning)
      .required(
          "command", &CallbackOptions::command,
          "For /bin/sh, in the working directory of rank 0; its output goes to callbacks.log in the run directory. "
          "Its environment has the facts: TRAINCTL_EVENT, TRAINCTL_RUN, TRAINCTL_RUN_DIR, TRAINCTL_STEP, and of an "
          "epoch or the end TRAINCTL_EPOCH, TRAINCTL_LOSS, TRAINCTL_VAL_LOSS and every other value likewise, of a "
          "checkpoint TRAINCTL_CHECKPOINT, of the end TRAINCTL_STATUS and TRAINCTL_SECONDS.")
      .key("timeout", &CallbackOptions::timeout,
           "The command is ended after so long, and at the end of the run nothing is waited for longer than that.",
           more_than(0))
      .shorthand("command");
}

}  // namespace

const ChoiceTable& callback_choices() {
  static const ChoiceTable table{"callback",
                                 {callback("epoch", "Behind every epoch and its validation."),
                                  callback("checkpoint", "When a checkpoint is whole."),
                                  callback("end", "When the run has ended, whether completed, stopped or failed.")}};
  return table;
}

double seconds_at_end(const std::vector<Choice>& callbacks) {
  double longest = 0;
  for (const Choice& callback : callbacks) longest = std::max(longest, callback.as<CallbackOptions>().timeout.value);
  return longest;
}

}  // namespace trainctl
