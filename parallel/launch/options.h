// `cluster:` of a config: how many ranks run, on what and where.
#pragma once

#include <map>
#include <string>

#include "core/spec/values.h"

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
  std::map<std::string, int> hosts;  // slots by name
  Path hostfile;

  static Keys<ClusterOptions> keys();
};

}  // namespace trainctl
