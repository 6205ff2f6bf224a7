// This machine measured for a plan: by ranks that are started for it and compute as those of the planned run would.
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
  std::shared_ptr<KernelChoices> choices;  // by which the target compiles; it assumes those that are not made yet
};

// With what was measured while so many ranks computed at once. `threads`: of a rank. Request and backend outlive the
// target.
MeasuredTarget measured_target(const PlanRequest& request, int at_once, Backend& backend, int threads);

// How many of the ranks can compute at once on this machine, and do while they are measured.
int measured_at_once(int ranks, const Backend& backend);

// Sees to it that all that the plan needs of this machine is measured, kernel choices included, and kept: what is not
// there yet ranks find out, which this process starts with its own command line, or is itself where one computes at
// once. Strategies that the network does not take, or that find too little memory, are passed over. Returns how ranks
// failed, which is the caller's to report; nothing if all went well.
std::optional<Failure> complete_measurements(const PlanRequest& request, const LaunchPlan& launch, Backend& backend,
                                             const LaunchedConfig& config, const LaunchFlags& flags,
                                             const Situation& situation);

// What such a rank does, and ranks of a run that wants to know the same. Collective.
void measure_together(const PlanRequest& request, RankDevice& device, RankContext& context);

}  // namespace trainctl
