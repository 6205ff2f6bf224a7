// The options of the hooks that watch whether a value still improves: early stopping, and a falling learning rate.
#pragma once

#include <cstdint>
#include <string>

#include "core/metrics/monitor.h"
#include "core/spec/values.h"

namespace trainctl {

// As Keras' EarlyStopping.
struct EarlyStoppingOptions {
  Auto<std::string> monitor;  // auto: val_loss
  Auto<MonitorMode> mode;
  std::int64_t patience = 0;
  double min_delta = 0;
  std::int64_t start_from_epoch = 0;
  bool restore_best = false;

  static Keys<EarlyStoppingOptions> keys();
};

// As Keras' ReduceLROnPlateau.
struct PlateauOptions {
  Auto<std::string> monitor;  // auto: val_loss
  Auto<MonitorMode> mode;
  double factor = 0.1;
  std::int64_t patience = 10;
  double min_delta = 1e-4;
  std::int64_t cooldown = 0;
  double min_learning_rate = 0;

  static Keys<PlateauOptions> keys();
};

}  // namespace trainctl
