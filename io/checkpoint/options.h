// The `checkpoint` section of the config.
#pragma once

#include <string>

#include "core/metrics/monitor.h"
#include "core/spec/keys.h"
#include "core/spec/values.h"

namespace trainctl {

struct CheckpointOptions {
  Auto<Duration> every = {Duration::epochs(1)};
  Auto<std::string> monitor;
  Auto<MonitorMode> mode;
  int keep = 3;
  bool weights_only = false;
  bool background = true;

  static Keys<CheckpointOptions> keys();
};

}  // namespace trainctl
