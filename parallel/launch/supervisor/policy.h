// Decides the action after an attempt to run the ranks: a pure function of the outcomes of all attempts so far.
#pragma once

#include <functional>
#include <vector>

#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {

enum class NextAction {
  end,    // the run ends with the outcome of its last attempt
  again,  // the ranks are started once more
};

// `outcomes`: the outcomes of all attempts so far, at least one. `requests`: the requests to stop so far, which also
// apply to later attempts.
using Policy = std::function<NextAction(const std::vector<Outcome>& outcomes, const StopRequests& requests)>;

// The policy of a run with a single attempt.
inline NextAction end_always(const std::vector<Outcome>&, const StopRequests&) { return NextAction::end; }

}  // namespace trainctl
