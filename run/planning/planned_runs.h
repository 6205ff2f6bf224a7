// The runs that a plan compares: a config under its own strategy, and under the alternatives that its network supports.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/compile/memory_plan.h"
#include "parallel/plan/prediction.h"
#include "run/run_spec.h"

namespace trainctl {

struct Alternative;

// A config on a number of ranks of a kind of device.
struct PlanRequest {
  RunSpec spec;
  DataInfo data;
  int ranks = 1;
  int ranks_per_node = 1;
  DeviceTraits device;
  PlannedRanks planned = PlannedRanks::stages;  // the ranks planned for the run's own strategy
  std::int64_t memory = 0;                      // bytes that a rank may use; 0: unknown
};

// Throws Error{config} if ranks that share layers would be on several nodes: such a run does not start.
void require_layers_within_nodes(const StrategyOptions& strategy, int ranks, int ranks_per_node);

// The run under the strategy of the config, with all batch sizes that occur. Throws Error{config} if the network does
// not support the strategy.
PlannedRun configured_run(const PlanRequest& request);

// The run with a full training step alone, by which alternatives are compared. Empty if the network, the batch or the
// optimizer does not support the strategy; the reason is logged at level debug.
std::optional<PlannedRun> find_step(const PlanRequest& request);

// Calls body(alternative, run) for each alternative to the strategy of the config (alternatives()) for which
// find_step() finds a run, except those whose `sequence_parallel` has no effect and is not the config's.
void for_alternatives(const PlanRequest& request,
                      const std::function<void(const PlanRequest& alternative, PlannedRun run)>& body);

// The run with the blocks that `recompute: auto` computes again if a rank may use request.memory. Returns the run
// itself if the request does not ask for that, or if the run fits.
PlannedRun with_recomputed_blocks(const PlanRequest& request, PlannedRun run, const RankCompiler& compile);

// Predicts the alternatives. One without a pipeline that does not fit into the target's memory is followed by variants
// with two, four, ... times as many micro-batches, up to `largest_factor` times, until one fits. If `largest_factor` is
// over 1, alternatives that fit with `recompute: auto` are added, too.
std::vector<Alternative> predict_alternatives(const PlanRequest& request, const PlanTarget& target, int largest_factor);

}  // namespace trainctl
