// The options in `cluster:` of a config: how many ranks run, on which devices and hosts.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "core/spec/values.h"
#include "parallel/comm/transport.h"

namespace trainctl {

enum class DeviceChoice { automatic, cpu, cuda };

template <>
struct EnumNames<DeviceChoice> {
  static constexpr EnumName<DeviceChoice> names[] = {
      {DeviceChoice::automatic, "auto"}, {DeviceChoice::cpu, "cpu"}, {DeviceChoice::cuda, "cuda"}};
};

// The words of cluster.hang_timeout: a limit from measured steps (watch/hang_rule.h), or no watch over the ranks.
enum class HangChoice { automatic, none };

template <>
struct EnumNames<HangChoice> {
  static constexpr EnumName<HangChoice> names[] = {{HangChoice::automatic, "auto"}, {HangChoice::none, "none"}};
};

// cluster.hang_timeout: a word, or a time.
using HangTimeout = std::variant<HangChoice, Seconds>;

// The largest value of cluster.restarts.max.
inline constexpr int most_restarts = 1'000'000;

// Whether the supervisor starts the ranks again after a failure.
struct RestartOptions {
  int max = 0;
  int min_ranks = 1;

  static Keys<RestartOptions> keys();
};

struct ClusterOptions {
  Auto<int> ranks;
  DeviceChoice device = DeviceChoice::automatic;
  Transport communication = Transport::automatic;
  Auto<Size> memory;  // limit for one rank
  Seconds timeout{600};
  Auto<Seconds> start_timeout;
  HangTimeout hang_timeout = HangChoice::automatic;
  std::map<std::string, int> hosts;  // number of slots of each host
  Path hostfile;
  RestartOptions restarts;
  Seconds mean_time_between_failures{100.0 * 86400};  // of one host
  // The largest number of ranks that `ranks: auto` starts; set if the strategy limits the ranks. No key sets it.
  std::optional<int> max_ranks;
  // The number of ranks must be a multiple of this number, the product of the mesh's axes without the data axis, when
  // a restart has fewer ranks. No key sets it.
  int ranks_of_replica = 1;
  // The only number of ranks that the strategy permits; set if it fixes the number of replicas. No key sets it.
  std::optional<int> fixed_ranks;

  std::chrono::milliseconds deadline() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout.value * 1e3));
  }

  // How long the ranks may take to start, until all of them begin their work; zero: no limit.
  std::chrono::milliseconds start_deadline() const;

  // The mean time between failures of a run on this number of hosts, in seconds.
  double time_between_failures(int host_count) const { return mean_time_between_failures.value / host_count; }

  static Keys<ClusterOptions> keys();
};

}  // namespace trainctl
