// Lowering the learning rate when a monitored value no longer improves.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/metrics/patience.h"
#include "core/spec/values.h"

namespace trainctl {

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

// Lowers a factor on the learning rate that the schedule gives. Equal on all ranks, since the values are.
class Plateau {
 public:
  explicit Plateau(const PlateauOptions& options);

  // Takes the values of an evaluation, "val_loss" and so on. `scheduled` is the schedule's learning rate of the next
  // step. Whether the learning rate falls.
  bool lowers(double scheduled, const std::map<std::string, double>& values);
  // The learning rate for one that the schedule gives: no lower than the least, unless the schedule's is.
  double rate(double scheduled) const;
  const std::string& monitor() const { return monitor_; }

  std::string text() const;
  void read(const std::string& text);

 private:
  PlateauOptions options_;
  std::string monitor_;
  Patience patience_;
  double factor_ = 1;
  std::int64_t cooling_ = 0;  // evaluations that are left of the cooldown
};

}  // namespace trainctl
