// Lists the meshes, shards and micro-batches that a job could use instead.
#include "parallel/plan/alternatives.h"

#include <algorithm>

#include "core/base/format.h"
#include "parallel/strategies/options.h"

namespace trainctl {
namespace {

// With more stages, each has few layers and waits longer than it computes.
constexpr int max_stages = 8;
constexpr Shard all_shards[] = {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters};

// Adds the strategies with the mesh and the division of positions of `options`: one for each suitable `shard`.
void add_shards(const StrategyOptions& given, StrategyOptions options, bool has_peers,
                std::vector<StrategyOptions>& all) {
  for (const Shard shard : all_shards) {
    const bool is_sharded = shard != Shard::none;
    if (is_sharded && !has_peers) continue;  // a single replica has no peer to share states with
    if (is_sharded && given.sync_every.value > 1)
      continue;  // between averages each replica needs all states and gradients
    // Sharded gradients and parameters are communicated in every micro-batch.
    if (is_sharded && options.pipeline.value > 1 && shard != Shard::optimizer) continue;
    options.shard = shard;
    options.parameter_dtype = shard != Shard::none ? given.parameter_dtype : CommunicatedDType::float32;
    all.push_back(options);
  }
}

}  // namespace

std::vector<StrategyOptions> alternatives(const StrategyOptions& given, int ranks, int ranks_per_node) {
  std::vector<StrategyOptions> all;
  for (int stages = 1; stages <= std::min(max_stages, ranks); ++stages) {
    for (int tensor = 1; stages * tensor <= ranks && tensor <= ranks_per_node; ++tensor) {
      if (ranks % (stages * tensor) != 0 || ranks_per_node % tensor != 0) continue;
      if (given.reproducible && tensor > 1) continue;  // tensor parallelism changes bits
      StrategyOptions options = given;
      options.automatic = false;
      options.data = {};
      options.place.clear();
      options.pipeline = {stages, given.pipeline.location};
      options.tensor = {tensor, given.tensor.location};
      options.micro_batches = {};
      for (const bool divides : {false, true}) {
        if (divides ? tensor == 1 : tensor > 1 && given.sequence_parallel) continue;
        options.sequence_parallel = divides;
        add_shards(given, options, ranks > stages * tensor, all);
      }
      if (stages == 1 || tensor > 1 || given.reproducible) continue;
      options.shard = Shard::none;
      options.micro_batches.given =
          Located<int>(8 * stages, given.pipeline.location);  // twice the number that `auto` chooses
      all.push_back(options);
    }
  }
  return all;
}

std::string describe(const StrategyOptions& options, const Mesh& mesh) {
  std::string text = format("data {} x pipeline {} x tensor {}", mesh.data, mesh.pipeline, mesh.tensor);
  if (options.sequence_parallel) text += ", sequence_parallel";
  if (options.shard != Shard::none) text += format(", shard {}", name_of(options.shard));
  return text;
}

std::string strategy_yaml(const StrategyOptions& options) {
  const Node defaults = Value<StrategyOptions>::write({});
  std::string text;
  for (const Node::Entry& entry : Value<StrategyOptions>::write(options).entries) {
    const std::string value = flow_text(entry.value);
    const Node* default_value = defaults.find(entry.key);
    if (default_value == nullptr || value != flow_text(*default_value)) text += format("  {}: {}\n", entry.key, value);
  }
  return "strategy:\n" + (text.empty() ? "  data: auto\n" : text);
}

}  // namespace trainctl
