// This machine measured for a plan: by ranks that are started for it and compute as those of the planned run would.
#pragma once

#include <memory>
#include <vector>

#include "cmd/job.h"
#include "cmd/subcommand.h"
#include "io/loader/data.h"
#include "parallel/plan/costs.h"

namespace trainctl {

// What a plan asks for: a config under several strategies, the stated one first.
struct PlannedRuns {
  std::vector<RunSpec> specs;
  int ranks = 1;
  DataInfo info;
};

// The stated strategy and its alternatives on this machine.
PlannedRuns planned_runs(const RunSpec& spec, int ranks, const DataInfo& info);

// What was measured while so many ranks computed at once. `threads`: of a rank.
std::unique_ptr<Costs> measured_costs(const PlannedRuns& runs, int at_once, Backend& backend, int threads);

// How many of the ranks can compute at once on this machine, and do while they are measured.
int measured_at_once(int ranks, const Backend& backend);

// Sees to it that all that the plan needs of this machine is measured, kernel choices included, and kept: what is not
// there yet ranks find out, which this process starts with its own command line, or is itself where one computes at
// once. Strategies that the network does not take, or that find too little memory, are passed over. Where ranks fail
// it reports so and returns their exit code; else 0.
int complete_measurements(const PlannedRuns& runs, const LaunchPlan& launch, Backend& backend,
                          const CommonOptions& common, const LaunchFlags& flags, const Situation& situation);

// What such a rank does, and ranks of a run that wants to know the same. Collective.
void measure_together(const PlannedRuns& runs, RankDevice& device, RankContext& context);

}  // namespace trainctl
