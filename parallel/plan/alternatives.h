// The other ways to spread a job over the same ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

struct Mesh;
struct StrategyOptions;

// Strategies for so many ranks, in the order of their stages, then parts of layers: meshes whose sizes multiply to the
// ranks, tensor parallelism within a node, of each what replicas may share and a pipeline's micro-batches. Keys that
// are none of these stay as they are. Some are such that a network, a batch or an optimizer does not take them.
std::vector<StrategyOptions> alternatives(const StrategyOptions& stated, int ranks, int ranks_per_node);

// Why there is no alternative at all.
inline constexpr std::string_view takes_no_strategy = "the network takes no strategy on these ranks";

// "data 8 x pipeline 4 x tensor 2, shard optimizer".
std::string describe(const StrategyOptions& options, const Mesh& mesh);

// The strategy section of a config that asks for these options, two or more lines: the keys that are not as without the
// section.
std::string strategy_yaml(const StrategyOptions& options);

}  // namespace trainctl
