// Strategies: how the work of a network is spread over the ranks of a mesh. One table of them.
#pragma once

#include <set>
#include <string>

#include "core/program/parallelism.h"
#include "parallel/strategies/options.h"
#include "parallel/strategies/pipeline/stages.h"

namespace trainctl {

struct Strategy {
  Mesh mesh;
  StrategyOptions options;
  bool overlap = false;     // reductions run beside the backward pass
  int compute_streams = 1;  // of each rank, on which logical shards are computed side by side
  Stages stages = {};       // of a mesh with a pipeline
  // With recompute: auto, the names of the blocks that are computed again, of all stages (recomputable_blocks()).
  std::set<std::string> recomputed = {};
};

// One of the strategies, as two functions, either of which may be null; both change nothing where the mesh or the
// options have no part for the strategy.
struct StrategyEntry {
  // From the forward graph to this rank's part of it.
  Graph (*cut)(Graph graph, const MeshRank& rank, const Strategy& strategy) = nullptr;
  // From a program before its flat layout to one that shares its work.
  Program (*distribute)(Program program, const MeshRank& rank, const Strategy& strategy) = nullptr;
};

// What all strategies in the order of the table do to the programs of a rank.
Parallelism parallelism(const Strategy& strategy, int rank);

}  // namespace trainctl
