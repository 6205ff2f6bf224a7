// The options of the hooks that monitor whether a value still improves: early stopping and the reduction of the
// learning rate on a plateau.
#pragma once

#include <cstdint>
#include <string>

#include "core/metrics/monitor.h"
#include "core/spec/values.h"

namespace trainctl {

// Options with the meaning of Keras' EarlyStopping arguments.
struct EarlyStoppingOptions {
  Auto<std::string> monitor;  // auto: val_loss
  Auto<MonitorMode> mode;
  std::int64_t patience = 0;
  double min_delta = 0;
  std::int64_t start_from_epoch = 0;
  bool restore_best = false;

  static Keys<EarlyStoppingOptions> keys();
};

// Options with the meaning of Keras' ReduceLROnPlateau arguments.
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
