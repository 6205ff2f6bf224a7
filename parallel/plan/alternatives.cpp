// Meshes and what goes with them.
#include "parallel/plan/alternatives.h"

#include <algorithm>

#include "core/base/format.h"
#include "parallel/strategies/options.h"

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
      if (stated.reproducible && tensor > 1) continue;  // which changes bits
      StrategyOptions options = stated;
      options.automatic = false;
      options.data = {};
      options.place.clear();
      options.pipeline = {stages, stated.pipeline.location};
      options.tensor = {tensor, stated.tensor.location};
      options.micro_batches = {};
      for (const Shard shard : all_shards) {
        const bool shares = shard != Shard::none;
        if (shares && ranks == stages * tensor) continue;  // one replica
        if (shares && stated.sync_every.value > 1)
          continue;  // between averages each replica holds all that it learns by
        // Gradients and parameters that are shared travel with every micro-batch.
        if (shares && stages > 1 && shard != Shard::optimizer) continue;
        options.shard = shard;
        all.push_back(options);
      }
      if (stages == 1 || tensor > 1 || stated.reproducible) continue;
      options.shard = Shard::none;
      options.micro_batches.stated =
          Located<int>(8 * stages, stated.pipeline.location);  // twice as many as `auto` takes
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
  const Node usual = Value<StrategyOptions>::write({});
  std::string text;
  for (const Node::Entry& entry : Value<StrategyOptions>::write(options).entries) {
    const std::string value = flow_text(entry.value);
    const Node* other = usual.find(entry.key);
    if (other == nullptr || value != flow_text(*other)) text += format("  {}: {}\n", entry.key, value);
  }
  return "strategy:\n" + (text.empty() ? "  data: auto\n" : text);
}

}  // namespace trainctl
