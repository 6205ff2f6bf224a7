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

// What was measured, for ranks that lie on this machine as the launch says.
std::unique_ptr<Costs> measured_costs(const PlannedRuns& runs, const LaunchPlan& launch, Backend& backend);

// Sees to it that all that the plan needs of this machine is measured, kernel choices included, and kept: what is not
// there yet ranks find out, which this process starts with its own command line, or is itself where one computes at
// once. Strategies that the network does not take, or that find too little memory, are passed over. Where ranks fail
// it reports so and returns their exit code; else 0.
int complete_measurements(const PlannedRuns& runs, const LaunchPlan& launch, Backend& backend,
                          const CommonOptions& common, const LaunchFlags& flags, const Situation& situation);

// What such a rank does. Collective; returns the exit code.
int measure_as_rank(const PlannedRuns& runs, RankContext& context);

}  // namespace trainctl
