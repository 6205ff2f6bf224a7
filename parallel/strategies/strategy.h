// Lists the strategies, which distribute the work of a network over the ranks of a mesh.
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
  bool overlap = false;     // whether reductions overlap the backward pass
  int compute_streams = 1;  // number of streams of each rank, which compute logical shards in parallel
  Stages stages = {};       // set for a mesh with a pipeline
  // With `recompute: auto`, the names of the recomputed blocks of all stages (recomputable_blocks()).
  std::set<std::string> recomputed = {};
};

// Combines all strategies, in the order of the table, into the functions applied to the graphs and programs of a rank.
Parallelism parallelism(const Strategy& strategy, int rank);

}  // namespace trainctl
