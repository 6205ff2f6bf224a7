// Meshes and what goes with them.
#include "parallel/plan/alternatives.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {
namespace {

// More stages than this have few layers each, and wait more than they compute.
constexpr int most_stages = 8;
constexpr Shard all_shards[] = {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters};

}  // namespace

std::vector<StrategyOptions> alternatives(const StrategyOptions& stated, int ranks, int ranks_per_node) {
  std::vector<StrategyOptions> all;
  for (int stages = 1; stages <= std::min(most_stages, ranks); ++stages) {
    for (int tensor = 1; stages * tensor <= ranks && tensor <= ranks_per_node; ++tensor) {
      if (ranks % (stages * tensor) != 0 || ranks_per_node % tensor != 0) continue;
      StrategyOptions options = stated;
      options.data = {};
      options.place.clear();
      options.pipeline = {stages, stated.pipeline.place};
      options.tensor = {tensor, stated.tensor.place};
      options.micro_batches = {};
      for (const Shard shard : all_shards) {
        const bool shares = shard != Shard::none;
        if (shares && ranks == stages * tensor) continue;  // one replica
        // Gradients and parameters that are shared travel with every micro-batch.
        if (shares && stages > 1 && shard != Shard::optimizer) continue;
        options.shard = shard;
        all.push_back(options);
      }
      if (stages == 1 || tensor > 1) continue;
      options.shard = Shard::none;
      options.micro_batches.stated = Placed<int>(8 * stages, stated.pipeline.place);  // twice as many as `auto` takes
      all.push_back(options);
    }
  }
  return all;
}

std::string describe(const StrategyOptions& options, const Mesh& mesh) {
  std::string text = format("data {} x pipeline {} x tensor {}", mesh.data, mesh.pipeline, mesh.tensor);
  if (options.shard != Shard::none) text += format(", shard {}", name_of(options.shard));
  return text;
}

std::string strategy_yaml(const StrategyOptions& options) {
  std::string text;
  if (options.stages() > 1) text += format("  pipeline: {}\n", options.stages());
  if (options.micro_batches.stated) text += format("  micro_batches: {}\n", options.micro_batches.stated->value);
  if (options.tensor.value > 1) text += format("  tensor: {}\n", options.tensor.value);
  if (options.shard != Shard::none) text += format("  shard: {}\n", name_of(options.shard));
  return "strategy:\n" + (text.empty() ? "  data: auto\n" : text);
}

}  // namespace trainctl
