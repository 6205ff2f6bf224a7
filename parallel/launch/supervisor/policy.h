// Decides what follows an attempt to run the ranks: a pure function of the outcomes of the attempts so far.
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

// `outcomes`: those of all attempts, at least one. `requests`: the requests to stop so far, which also apply to a later
// attempt.
using Policy = std::function<NextAction(const std::vector<Outcome>& outcomes, const StopRequests& requests)>;

// The policy of a run with a single attempt.
inline NextAction end_always(const std::vector<Outcome>&, const StopRequests&) { return NextAction::end; }

}  // namespace trainctl
