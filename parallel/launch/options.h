// `cluster:` of a config: how many ranks run, on what and where.
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
  Auto<Size> memory;  // that one rank may use
  Seconds timeout{600};
  std::map<std::string, int> hosts;  // slots by name
  Path hostfile;
  std::optional<int> most_ranks;  // that `ranks: auto` starts, where the strategy goes with no more; no key of its own

  std::chrono::milliseconds deadline() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout.value * 1e3));
  }

  static Keys<ClusterOptions> keys();
};

}  // namespace trainctl
