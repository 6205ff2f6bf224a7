// The interface of a parallel strategy: two functions that change the programs of one rank, called by core and
// implemented by parallel.
#pragma once

#include <functional>

#include "core/graph/ops/whole_batch.h"
#include "core/program/program.h"

namespace trainctl {

// The two functions are applied to both training and evaluation programs; an empty function makes no change.
struct Parallelism {
  MeshRank rank;
  // Whether the gradients of a micro-batch are added to the gradients of earlier micro-batches; otherwise each
  // micro-batch's backward pass overwrites them, and `distribute` adds them up.
  bool keeps_gradients = true;
  // Whether micro-batches contain collectives, so that all ranks must run the same number of micro-batches; a rank with
  // fewer micro-batches runs its last micro-batches without samples.
  bool equal_micro_batches = false;
  // The samples of the replicas in the batch of the program, for losses over the whole batch; without counts, the
  // program has no other samples than its own.
  SampleShares shares = {};
  // Makes this rank's forward graph from the whole graph: splits weights, cuts stages. Fusion and differentiation
  // follow, so that no fusion crosses a cut, and the backward pass of a collective follows from its gradient rule.
  std::function<Graph(Graph)> cut;
  // Receives a program with its segments and schedule, and returns a program that shares its work with the other ranks.
  // The program's flat layout has an order but no offsets yet, and its update segment is empty: the function appends
  // the reductions of gradients, which finish_training inserts between the Agree op and the optimizer.
  std::function<Program(Program)> distribute;
};

}  // namespace trainctl
