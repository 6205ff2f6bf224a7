// The table of strategies, and all of them as one.
#include "parallel/strategies/strategy.h"

#include <utility>

#include "parallel/strategies/data.h"
#include "parallel/strategies/tensor.h"

namespace trainctl {
namespace {

// In the order in which they act.
constexpr StrategyEntry strategies[] = {
    {split_layers, nullptr},      // tensor parallelism
    {nullptr, reduce_gradients},  // data parallelism
};

}  // namespace

Parallelism parallelism(const Strategy& strategy, int rank) {
  Parallelism all;
  all.rank = MeshRank(strategy.mesh, rank);
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
