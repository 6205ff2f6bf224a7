// `strategy: auto`: the best of what `trainctl plan` finds for a run's ranks.
#pragma once

#include <string>

namespace trainctl {

struct DataInfo;
struct RankContext;
struct RankDevice;
struct RunSpec;
struct StrategyOptions;

// The alternative whose step is predicted to take least, of those that fit into the memory of every rank; it is logged
// in a line, with predicted times. The ranks measure what is not known of this machine; rank 0 chooses. One rank alone
// has no choice. Throws CollectiveError{resource} where none fits. Collective.
StrategyOptions choose_strategy(const RunSpec& spec, const DataInfo& data, RankDevice& device, RankContext& context);

// The section as a text of one document, and back.
std::string strategy_text(const StrategyOptions& options);
StrategyOptions read_strategy(const std::string& text);

}  // namespace trainctl
