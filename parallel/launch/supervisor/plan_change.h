// What shall change in a run while its ranks train.
#pragma once

#include <optional>

#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/status.h"

namespace trainctl {

struct PlanChange {
  std::optional<LaunchPlan> plan = {};        // the plan with which the run shall go on; empty: as before
  bool is_requested = false;                  // whether the user has requested the plan
  std::optional<RefusedResize> refused = {};  // a request of the user that cannot be met
};

}  // namespace trainctl
