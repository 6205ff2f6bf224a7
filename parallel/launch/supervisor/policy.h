// What follows an attempt to run the ranks: a pure function of how the attempts so far ended.
#pragma once

#include <functional>
#include <vector>

#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {

enum class NextAction {
  end,    // the run ends as its last attempt did
  again,  // the ranks are started once more
};

// `outcomes`: of all attempts, at least one. `requests`: to stop, so far; a later attempt heeds them, too.
using Policy = std::function<NextAction(const std::vector<Outcome>& outcomes, const StopRequests& requests)>;

// A run has one attempt.
inline NextAction end_always(const std::vector<Outcome>&, const StopRequests&) { return NextAction::end; }

}  // namespace trainctl
