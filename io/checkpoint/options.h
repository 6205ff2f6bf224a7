// The `checkpoint` section of the config.
#pragma once

#include <optional>
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
  std::optional<Duration> memory_every;

  // The number of savers whose copies of a rank's shards need host memory: see `background` and `memory_every`.
  int background_savers() const { return background ? (memory_every ? 2 : 1) : 0; }

  static Keys<CheckpointOptions> keys();
};

}  // namespace trainctl
