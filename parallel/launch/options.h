// The options in `cluster:` of a config: how many ranks run, on which devices and hosts.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "core/spec/values.h"
#include "parallel/comm/transport.h"

namespace trainctl {

enum class DeviceChoice { automatic, cpu, cuda };

template <>
struct EnumNames<DeviceChoice> {
  static constexpr EnumName<DeviceChoice> names[] = {
      {DeviceChoice::automatic, "auto"}, {DeviceChoice::cpu, "cpu"}, {DeviceChoice::cuda, "cuda"}};
};

struct ClusterOptions {
  Auto<int> ranks;
  DeviceChoice device = DeviceChoice::automatic;
  Transport communication = Transport::automatic;
  Auto<Size> memory;  // limit for one rank
  Seconds timeout{600};
  std::map<std::string, int> hosts;  // number of slots of each host
  Path hostfile;
  // The largest number of ranks that `ranks: auto` starts; set if the strategy limits the ranks. No key sets it.
  std::optional<int> max_ranks;

  std::chrono::milliseconds deadline() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout.value * 1e3));
  }

  static Keys<ClusterOptions> keys();
};

}  // namespace trainctl
