// Plans a config: for a machine that a file describes, or for this machine, which is measured.
#pragma once

#include <optional>
#include <string>

#include "core/base/failure.h"
#include "parallel/launch/plan.h"
#include "parallel/plan/report.h"

namespace trainctl {

struct GivenConfig;
struct RunSpec;
struct Situation;

// The ranks and the machine of a plan.
struct PlanOptions {
  LaunchFlags launch;
  int nodes = 0;         // 0: as few as can hold the ranks
  std::string machine;   // name or file; empty: this machine
  std::string timeline;  // the file for a timeline of the simulated step; empty: none
};

// Predicts the run and its alternatives on the machine that the options name. Throws Error{config} if the ranks do not
// fit on the machine's nodes, or if the network does not support the strategy.
Plan plan_for_machine(const RunSpec& spec, const PlanOptions& options);

// Predicts the run and its alternatives on this machine, which is first measured if that was not done before. Returns
// the failure of the ranks that measure, which the caller must report.
std::optional<Failure> plan_for_this_machine(const RunSpec& spec, const PlanOptions& options, const GivenConfig& given,
                                             const Situation& situation, Plan& plan);

// Measures this machine, on one of the ranks that plan_for_this_machine() has started. Returns the exit code.
int measure_for_plan(const RunSpec& spec, const LaunchFlags& launch, bool json, const Situation& situation);

}  // namespace trainctl
