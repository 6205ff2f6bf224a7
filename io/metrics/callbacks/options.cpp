// The keys of `log.callbacks`.
#include "io/metrics/callbacks/options.h"

#include <algorithm>

#include "core/spec/keys.h"

namespace trainctl {
namespace {

Section callback(const std::string& event, const std::string& meaning) {
  return Keys<CallbackOptions>(event, meaning)
      .required(
          "command", &CallbackOptions::command,
          "A command for /bin/sh, which is run in the working directory of rank 0; its output goes to callbacks.log in "
          "the run directory. Its environment describes the event: TRAINCTL_EVENT, TRAINCTL_RUN, TRAINCTL_RUN_DIR, "
          "TRAINCTL_STEP; for an epoch and the end TRAINCTL_EPOCH, TRAINCTL_LOSS, TRAINCTL_VAL_LOSS and a variable for "
          "each other metric; for a checkpoint TRAINCTL_CHECKPOINT; for the end TRAINCTL_STATUS and TRAINCTL_SECONDS.")
      .key("timeout", &CallbackOptions::timeout,
           "The command is killed after this time. The run also waits no longer than this for it at its end.",
           more_than(0))
      .shorthand("command");
}

}  // namespace

const ChoiceTable& callback_choices() {
  static const ChoiceTable table{"callback",
                                 {callback("epoch", "After every epoch and its validation."),
                                  callback("checkpoint", "After a checkpoint is complete."),
                                  callback("end", "After the run has ended: completed, stopped or failed.")}};
  return table;
}

double seconds_at_end(const std::vector<Choice>& callbacks) {
  double longest = 0;
  for (const Choice& callback : callbacks) longest = std::max(longest, callback.as<CallbackOptions>().timeout.value);
  return longest;
}

}  // namespace trainctl
