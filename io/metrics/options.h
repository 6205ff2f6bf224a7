// The `log` section of the config.
#pragma once

#include <optional>

#include "core/spec/keys.h"
#include "core/spec/values.h"
#include "io/metrics/callbacks/options.h"
#include "io/metrics/prometheus/address.h"

namespace trainctl {

struct LogOptions {
  Duration every = Duration::steps(10);
  bool gpu = true;
  bool tensorboard = true;
  std::optional<Duration> histograms;
  std::optional<Duration> gradient_norms;
  std::optional<int> samples = 8;
  std::optional<Located<ListenAddress>> prometheus;
  ChoicesOf<callback_choices> callbacks;

  static Keys<LogOptions> keys();
};

}  // namespace trainctl
