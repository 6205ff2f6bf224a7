// The table of strategies, and all of them as one.
#include "parallel/strategies/strategy.h"

#include <utility>

#include "parallel/strategies/data.h"
#include "parallel/strategies/gathered.h"
#include "parallel/strategies/pipeline/pipeline.h"
#include "parallel/strategies/recompute/recompute.h"
#include "parallel/strategies/reproducible/reproducible.h"
#include "parallel/strategies/sharded.h"
#include "parallel/strategies/synchronized.h"
#include "parallel/strategies/tensor/split_layers.h"

namespace trainctl {
namespace {

// In the order in which they act.
constexpr StrategyEntry strategies[] = {
    {split_layers, nullptr},            // tensor parallelism
    {cut_stage, schedule_stage},        // pipeline
    {synchronize_statistics, nullptr},  // batch normalization over the data axis
    {nullptr, recompute_activations},
    {nullptr, reduce_gradients},  // data parallelism
    {nullptr, share_update},      // sharding
    {nullptr, add_in_tree},       // reproducible mode
    {nullptr, gather_parameters},
    {nullptr, sum_shared_gradients},  // of layers on several stages
};

}  // namespace

Parallelism parallelism(const Strategy& strategy, int rank) {
  Parallelism all;
  all.rank = MeshRank(strategy.mesh, rank);
  all.keeps_gradients = strategy.mesh.data == 1 || keeps_gradients(strategy.options.shard);
  all.equal_micro_batches = !all.keeps_gradients;
  all.cut = [strategy, where = all.rank](Graph graph) {
    for (const StrategyEntry& entry : strategies) {
      if (entry.cut != nullptr) graph = entry.cut(std::move(graph), where, strategy);
    }
    return graph;
  };
  all.distribute = [strategy, where = all.rank](Program program) {
    for (const StrategyEntry& entry : strategies) {
      if (entry.distribute != nullptr) program = entry.distribute(std::move(program), where, strategy);
    }
    return program;
  };
  return all;
}

}  // namespace trainctl
