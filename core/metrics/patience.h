// Counts the evaluations since a monitored value improved.
#pragma once

#include <cstdint>
#include <string>

#include "core/metrics/monitor.h"

namespace trainctl {

// Counts how many evaluations in a row were not better than the best value by more than `min_delta`.
class Patience {
 public:
  Patience(MonitorMode mode, double min_delta) : mode_(mode), min_delta_(min_delta) {}

  // Adds the value of the next evaluation. Returns whether it is better than all earlier values; NaN never is.
  bool improves(double value);
  std::int64_t waited() const { return waited_; }  // evaluations since the best one
  void begin_anew() { waited_ = 0; }

  // Converts the state to a text and back. An empty text means the initial state.
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
