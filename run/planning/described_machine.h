// A machine that a file describes, as the target of a plan.
#pragma once

#include <string>

#include "parallel/plan/machine.h"
#include "parallel/plan/prediction.h"

namespace trainctl {

struct PlanRequest;

// Loads a machine: `h100-node` means configs/machines/h100-node.yaml; a name with a slash or an ending is a path.
// Throws ConfigError with all errors of the file, or Error{config} with the known names if there is no such machine.
Machine load_machine(const std::string& name);

// Returns the ranks on each node if `ranks` ranks run on `nodes` nodes of the machine (0: as few as can hold the
// ranks). Throws Error{config} if they cannot. `name`: of the machine.
int ranks_per_node(int ranks, int nodes, const Machine& machine, const std::string& name);

// Returns the machine as a target. The request must outlive it.
PlanTarget described_target(const PlanRequest& request, const Machine& machine, const std::string& name);

}  // namespace trainctl
