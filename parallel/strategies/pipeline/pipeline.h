// Pipeline parallelism: every rank along the axis holds a stage, a run of consecutive layers; micro-batches follow each
// other through the stages.
#pragma once

#include <set>

#include "parallel/strategies/strategy.h"

namespace trainctl {

// The tensors of a forward graph that depend on trainable parameters, these included: gradients are computed by them.
std::set<TensorId> trained_tensors(const Graph& graph);

// This rank's stage of a whole forward graph (Strategy::stages). A tensor that later stages read is sent straight to
// each of them, which receives it in the place of the op that makes it; gradients return on the same ways. Inputs and
// outputs of other stages become no_tensor; parameters and statistics are those of the stage, and each parameter knows
// the stages that share it. Without a pipeline the graph stays as it is.
Graph cut_stage(Graph graph, const MeshRank& rank, const Strategy& strategy);

// Orders the micro-batches of a stage's program by the strategy's schedule. What the stage exchanges with others
// becomes asynchronous and a segment of its own, between the passes of other micro-batches where the schedule says so.
// A micro-batch lies in a slot of its own as long as it is in flight. Without a pipeline, or without a
// forward pass, the program stays as it is.
Program schedule_stage(Program program, const MeshRank& rank, const Strategy& strategy);

// Sums the gradients of parameters that layers on several stages share over these stages, at the begin of the update,
// when they have been reduced over the data axis: each stage then takes the same step. Without a pipeline the program
// stays as it is.
Program sum_shared_gradients(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
