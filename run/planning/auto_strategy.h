// Chooses a strategy for `strategy: auto`: the best one that `trainctl plan` finds for a run's ranks.
#pragma once

#include <string>

namespace trainctl {

struct DataInfo;
struct RankContext;
struct RankDevice;
struct RunSpec;
struct StrategyOptions;

// Returns the alternative with the shortest predicted step, of those that fit into the memory of every rank, and logs
// it with predicted times. The ranks measure what is not known of this machine; rank 0 chooses. One rank alone has no
// choice. Throws CollectiveError{resource} if no alternative fits. Collective.
StrategyOptions choose_strategy(const RunSpec& spec, const DataInfo& data, RankDevice& device, RankContext& context);

// Writes the `strategy` section as YAML, and reads it.
std::string strategy_text(const StrategyOptions& options);
StrategyOptions read_strategy(const std::string& text);

}  // namespace trainctl
