// Evaluations that a monitored value goes without improving.
#pragma once

#include <cstdint>
#include <string>

#include "core/metrics/monitor.h"

namespace trainctl {

// Counts how often in turn a value was no better than the best one by more than `min_delta`.
class Patience {
 public:
  Patience(MonitorMode mode, double min_delta) : mode_(mode), min_delta_(min_delta) {}

  // Takes the value of one more evaluation. Returns whether it is better than all before; NaN never is.
  bool improves(double value);
  std::int64_t waited() const { return waited_; }  // evaluations since the best one
  void begin_anew() { waited_ = 0; }

  // The state as a text that reads back as the same. An empty text is that of the beginning.
  std::string text() const;
  void read(const std::string& text);

 private:
  MonitorMode mode_;
  double min_delta_;
  bool has_best_ = false;
  double best_ = 0;
  std::int64_t waited_ = 0;
};

}  // namespace trainctl
