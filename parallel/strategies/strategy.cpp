// The table of strategies and their combination.
#include "parallel/strategies/strategy.h"

#include <utility>

#include "parallel/strategies/data.h"
#include "parallel/strategies/gathered.h"
#include "parallel/strategies/pipeline/pipeline.h"
#include "parallel/strategies/recompute/recompute.h"
#include "parallel/strategies/reproducible/reproducible.h"
#include "parallel/strategies/sharded.h"
#include "parallel/strategies/synchronized.h"
#include "parallel/strategies/tensor/gather_again.h"
#include "parallel/strategies/tensor/shared_parameters.h"
#include "parallel/strategies/tensor/split_layers.h"

namespace trainctl {
namespace {

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
