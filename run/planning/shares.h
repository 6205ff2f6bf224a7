// What `strategy.share: auto` stands for: each replica's share of a batch, by its measured speed.
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

// The name of the checkpoint's fact that holds the samples of each replica, "44 20".
inline constexpr const char* share_key = "share";

// The spec with `auto` replaced by the samples that each replica has of a full batch, equal on all ranks: those of the
// run's checkpoint where as many ranks go on with it, else measured, which takes about a second. Other specs, and those
// of one replica, stay as they are. Collective.
RunSpec with_shares(RunSpec spec, const Data& data, RankDevice& device, RankContext& context,
                    const std::optional<Snapshot>& resumed);

// The shares as the fact has them; "" where the spec states none.
std::string text_of_shares(const StrategyOptions& strategy);

// Cuts `samples` into parts in proportion to the speeds, each a multiple of `unit` with at least one unit where there
// are as many, by largest remainders. `unit` divides `samples`.
std::vector<std::int64_t> parts_by_speed(std::int64_t samples, std::int64_t unit, const std::vector<double>& speeds);

}  // namespace trainctl
