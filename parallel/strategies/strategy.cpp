// The table of strategies and their combination.
#include "parallel/strategies/strategy.h"

#include <utility>

#include "parallel/strategies/gathered.h"
#include "parallel/strategies/pipeline/pipeline.h"
#include "parallel/strategies/table.h"
#include "parallel/strategies/tensor/gather_again.h"

namespace trainctl {
namespace {

// A strategy consists of two functions; each may be null. The functions return their argument unchanged if the mesh or
// the options do not use the strategy.
struct StrategyEntry {
  // Returns this rank's shard of the forward graph.
  Graph (*cut)(Graph graph, const MeshRank& rank, const Strategy& strategy) = nullptr;
  // Adds the rank's communication to a program that has no flat layout yet.
  Program (*distribute)(Program program, const MeshRank& rank, const Strategy& strategy) = nullptr;
};

// The strategies in the order in which they are applied.
constexpr StrategyEntry strategies[] = {
    {split_layers, nullptr},            // tensor parallelism
    {cut_stage, schedule_stage},        // pipeline
    {synchronize_statistics, nullptr},  // batch normalization over the data axis
    {nullptr, read_shared_parameters},  // of sequence parallelism
    {nullptr, recompute_activations},
    {nullptr, gather_again},      // activations of sequence parallelism
    {nullptr, reduce_gradients},  // data parallelism
    {nullptr, share_update},      // sharding
    {nullptr, add_in_tree},       // reproducible mode
    {nullptr, gather_parameters},
    {nullptr, sum_shared_gradients},  // gradients of layers on several stages
};

}  // namespace

Parallelism parallelism(const Strategy& strategy, int rank) {
  Parallelism combined;
  combined.rank = MeshRank(strategy.mesh, rank);
  combined.keeps_gradients = strategy.mesh.data == 1 || keeps_gradients(strategy.options.shard);
  combined.equal_micro_batches = !combined.keeps_gradients;
  combined.cut = [strategy, position = combined.rank](Graph graph) {
    for (const StrategyEntry& entry : strategies) {
      if (entry.cut != nullptr) graph = entry.cut(std::move(graph), position, strategy);
    }
    return graph;
  };
  combined.distribute = [strategy, position = combined.rank](Program program) {
    for (const StrategyEntry& entry : strategies) {
      if (entry.distribute != nullptr) program = entry.distribute(std::move(program), position, strategy);
    }
    return program;
  };
  return combined;
}

}  // namespace trainctl
