// The `log` section of the config.
#pragma once

#include "core/spec/keys.h"
#include "core/spec/values.h"

namespace trainctl {

struct LogOptions {
  Duration every = Duration::steps(10);
  bool gpu = true;

  static Keys<LogOptions> keys();
};

}  // namespace trainctl
