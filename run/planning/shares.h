// Resolves `strategy.share: auto`: each replica's share of a batch, by its measured speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainctl {

class Data;
struct RankContext;
struct RankDevice;
struct RunSpec;
struct Snapshot;
struct StrategyOptions;

// The key of the checkpoint's metadata that holds the number of samples of each replica: "44 20".
inline constexpr const char* share_key = "share";

// Replaces `auto` by the number of samples that each replica has of a full batch, the same on all ranks: the numbers in
// the run's checkpoint if the same number of ranks continues it, else measured ones, which takes about a second.
// Returns other specs, and specs with one replica, as they are. Collective.
RunSpec with_shares(RunSpec spec, const Data& data, RankDevice& device, RankContext& context,
                    const std::optional<Snapshot>& resumed);

// The shares as the metadata has them; "" if the strategy has none.
std::string text_of_shares(const StrategyOptions& strategy);

// Divides `samples` into shares in proportion to the speeds, by largest remainders. Each share is a multiple of `unit`
// and, if there are enough units, at least one of them. `unit` must divide `samples`.
std::vector<std::int64_t> shares_by_speed(std::int64_t samples, std::int64_t unit, const std::vector<double>& speeds);

}  // namespace trainctl
