// Lists the alternative strategies of a job on the same ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

struct Mesh;
struct StrategyOptions;

// Returns strategies for `ranks` ranks, ordered by the number of stages and then by the number of tensor shards. They
// cover all meshes of `ranks` ranks with tensor parallelism within a node. Each mesh is combined with every suitable
// `shard` option and number of micro-batches, and with tensor parallelism also with `sequence_parallel`, always if
// `given` has it. Other keys keep their values from `given`. Some strategies may not suit the network, the batch or the
// optimizer.
std::vector<StrategyOptions> alternatives(const StrategyOptions& given, int ranks, int ranks_per_node);

// The error text if there is no alternative.
inline constexpr std::string_view no_strategy_text = "the network supports no strategy on these ranks";

// Returns, for example, "data 8 x pipeline 4 x tensor 2, sequence_parallel, shard optimizer".
std::string describe(const StrategyOptions& options, const Mesh& mesh);

// Returns the strategy section of a config, as two or more lines of YAML. It contains the options that differ from
// their defaults.
std::string strategy_yaml(const StrategyOptions& options);

}  // namespace trainctl
