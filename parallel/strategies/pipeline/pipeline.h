// Pipeline parallelism: every rank along the axis holds a stage, a run of consecutive layers; micro-batches pass
// through the stages one after the other.
#pragma once

#include <set>

#include "parallel/strategies/strategy.h"

namespace trainctl {

// Returns the tensors of a forward graph that have gradients: trainable parameters, and tensors that depend on
// trainable parameters.
std::set<TensorId> trained_tensors(const Graph& graph);

// Returns this rank's stage of a whole forward graph (Strategy::stages). A tensor that later stages read is sent
// directly to each of them, which receives it instead of computing it; gradients return on the same paths. Inputs and
// outputs of other stages become no_tensor; the graph has only the stage's parameters and statistics, and each
// parameter lists the stages that share it. Without a pipeline the graph is not changed.
Graph cut_stage(Graph graph, const MeshRank& rank, const Strategy& strategy);

// Orders the micro-batches of a stage's program by the strategy's schedule. Sends and receives become asynchronous and
// form segments of their own, which run between the passes of other micro-batches according to the schedule. A
// micro-batch has its own slot while it is in the pipeline. Without a pipeline, or without a forward pass, the program
// is not changed.
Program schedule_stage(Program program, const MeshRank& rank, const Strategy& strategy);

// If layers on several stages share a parameter, sums its gradient over these stages, so that each stage makes the same
// update. The sum is computed at the start of the update, after the reduction over the data axis. Without a pipeline
// the program is not changed.
Program sum_shared_gradients(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
