// Measures this machine for a plan: starts ranks that compute as the ranks of the planned run would.
#pragma once

#include <memory>
#include <optional>

#include "parallel/plan/prediction.h"

namespace trainctl {

class Backend;
class KernelChoices;
struct Failure;
struct LaunchFlags;
struct LaunchPlan;
struct LaunchedConfig;
struct PlanRequest;
struct RankContext;
struct RankDevice;
struct Situation;

// This machine as the target of a plan.
struct MeasuredTarget {
  PlanTarget target;
  std::shared_ptr<KernelChoices> choices;  // the choices with which the target compiles; missing choices are assumed
};

// Returns this machine as a target, with the measurements of `at_once` ranks that computed at the same time. `threads`:
// of each rank. Request and backend must outlive the target.
MeasuredTarget measured_target(const PlanRequest& request, int at_once, Backend& backend, int threads);

// The number of ranks that can compute at the same time on this machine, and do so while they are measured.
int measured_at_once(int ranks, const Backend& backend);

// Measures and stores what the plan needs of this machine and is not known yet, kernel choices included. The measuring
// ranks are started by this process with its own command line; if only one computes at a time, this process is the
// rank. Skips strategies that the network does not support or that need too much memory. Returns the failure of the
// ranks, which the caller must report; empty if all succeeded.
std::optional<Failure> complete_measurements(const PlanRequest& request, const LaunchPlan& launch, Backend& backend,
                                             const LaunchedConfig& config, const LaunchFlags& flags,
                                             const Situation& situation);

// Measures, on such a rank or on the ranks of a run that needs the same measurements. Collective.
void measure_together(const PlanRequest& request, RankDevice& device, RankContext& context);

}  // namespace trainctl
