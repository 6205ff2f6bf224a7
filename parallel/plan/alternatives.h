// The other ways to spread a job over the same ranks.
#pragma once

#include <string>
#include <vector>

#include "parallel/strategies/options.h"

namespace trainctl {

// Strategies for so many ranks, in the order of their stages, then parts of layers: meshes whose sizes multiply to the
// ranks, tensor parallelism within a node, of each what replicas may share and a pipeline's micro-batches. Keys that
// are none of these stay as they are. Some are such that a network does not take them.
std::vector<StrategyOptions> alternatives(const StrategyOptions& stated, int ranks, int ranks_per_node);

// "data 8 x pipeline 4 x tensor 2, shard optimizer".
std::string describe(const StrategyOptions& options, const Mesh& mesh);

// The strategy section of a config that asks for these options, two or more lines.
std::string strategy_yaml(const StrategyOptions& options);

}  // namespace trainctl
