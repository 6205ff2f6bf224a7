// The runs that a plan compares: a config under the strategy that it states, and under those that its network takes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/compile/memory_plan.h"
#include "parallel/plan/prediction.h"
#include "run/run_spec.h"

namespace trainctl {

struct Alternative;

// A config on so many ranks of a kind of device.
struct PlanRequest {
  RunSpec spec;
  DataInfo data;
  int ranks = 1;
  int ranks_per_node = 1;
  DeviceTraits device;
  PlannedRanks planned = PlannedRanks::stages;  // of the run as stated
  std::int64_t memory = 0;                      // bytes that a rank may use; 0: not known
};

// Throws Error{config} where ranks that share layers would lie on several nodes: such a run does not start.
void require_layers_within_nodes(const StrategyOptions& strategy, int ranks, int ranks_per_node);

// The run as the config states it, with all batch sizes that occur. Throws Error{config} where the network does not
// take the strategy.
PlannedRun configured_run(const PlanRequest& request);

// Likewise for a full step of training alone, by which alternatives are compared. Nothing where the network, the batch
// or the optimizer does not take the strategy, and why at level debug.
std::optional<PlannedRun> find_step(const PlanRequest& request);

// Calls body(request, run) for each alternative to the stated strategy (alternatives()) that find_step() finds. The
// request given is the alternative's.
void for_alternatives(const PlanRequest& request,
                      const std::function<void(const PlanRequest& alternative, PlannedRun run)>& body);

// The run with the blocks that `recompute: auto` computes again where a rank may use request.memory: the run itself
// where the request does not ask for that, or the run fits.
PlannedRun with_recomputed_blocks(const PlanRequest& request, PlannedRun run, const RankCompiler& compile);

// Predictions for these. An alternative without a pipeline that does not fit into the target's memory is followed by
// those with two, four, ... times as many micro-batches, up to `most_parts` times, until one fits; `most_parts` over 1
// adds what fits by `recompute: auto` too.
std::vector<Alternative> predict_alternatives(const PlanRequest& request, const PlanTarget& target, int most_parts);

}  // namespace trainctl
