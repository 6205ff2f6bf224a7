// Decides the action after an attempt to run the ranks: a pure function of the outcomes of all attempts so far.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {

struct NextAction {
  bool again = false;                  // whether the ranks are started once more; otherwise the run ends
  std::chrono::milliseconds delay{0};  // time until they are started
  std::string why_not;                 // why a run that may restart ends nevertheless; "" if there is nothing to say
};

// `outcomes`: the outcomes of all attempts so far, at least one. `requests`: the requests to stop so far, which also
// apply to later attempts.
using Policy = std::function<NextAction(const std::vector<Outcome>& outcomes, const StopRequests& requests)>;

// The policy of a run with a single attempt.
inline NextAction end_always(const std::vector<Outcome>&, const StopRequests&) { return {}; }

// The policy of a run that starts again after a failure, at most `max` times: after a rank, a host or the launcher has
// ended or no longer answers, but not after errors of the config or the data, a lack of resources, divergence, or a
// request to stop. An attempt makes progress if it reaches a later step than all attempts before it. The run ends after
// four attempts in a row without progress. After an attempt with progress the ranks start immediately; otherwise they
// start after 1 s, then 2 s and 4 s.
Policy restart_policy(int max);

}  // namespace trainctl
