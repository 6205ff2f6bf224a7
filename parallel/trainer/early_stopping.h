// Ending a run whose monitored value no longer improves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/metrics/patience.h"
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

// Looks at the values of every evaluation. Equal on all ranks, since the values are.
class EarlyStopping {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options);

  // Takes the values of an evaluation behind `epochs` epochs, "val_loss" and so on. Whether the run is to end.
  bool stops(double epochs, const std::map<std::string, double>& values);
  const std::string& monitor() const { return monitor_; }
  std::int64_t waited() const { return patience_.waited(); }
  bool restores_best() const { return options_.restore_best; }

  std::string text() const { return patience_.text(); }
  void read(const std::string& text) { patience_.read(text); }

 private:
  EarlyStoppingOptions options_;
  std::string monitor_;
  Patience patience_;
};

}  // namespace trainctl
