// Decides which steps are reported: at intervals of steps, epochs or seconds, and less often for people.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/spec/units.h"

namespace trainctl {

class Due {
 public:
  explicit Due(Duration every) : every_(every) {}

  // Returns whether the step is reported. The caller must call it once for each step, with `now` in seconds of any
  // clock. An interval in steps reports the steps that are a multiple of it. An interval in epochs reports the steps
  // that reach a multiple of it. An interval in seconds reports the first step that is at least this time later than
  // the last reported step or, at first, than the first step.
  bool operator()(const StepEvent& event, double now) {
    switch (every_.unit) {
      case Duration::Unit::steps:
        return event.step % std::max<std::int64_t>(1, std::llround(every_.amount)) == 0;
      case Duration::Unit::epochs: {
        const double reached = std::floor(event.epoch / every_.amount + 1e-9);
        const double before = std::exchange(last_, reached);
        return reached > (std::isnan(before) ? std::floor(event.epoch / every_.amount - 1e-9) : before);
      }
      case Duration::Unit::seconds:
        if (std::isnan(last_)) last_ = now;
        if (now - last_ < every_.amount) return false;
        last_ = now;
        return true;
    }
    return false;
  }

 private:
  Duration every_;
  double last_ = std::numeric_limits<double>::quiet_NaN();
};

// Limits the lines of steps for people: the first ten lines immediately, then a line every few seconds, and once a
// minute in a long run.
class LineRate {
 public:
  // Returns whether a step that is due has a line. The caller must call it once for each such step, with `now` in
  // seconds of any clock.
  bool operator()(double now) {
    if (std::isnan(start_)) start_ = now;
    const double interval = std::clamp((now - start_) / 20, 5.0, 60.0);
    if (lines_ >= first_lines && now - last_ < interval) return false;
    ++lines_;
    last_ = now;
    return true;
  }

 private:
  static constexpr int first_lines = 10;

  int lines_ = 0;
  double start_ = std::numeric_limits<double>::quiet_NaN();
  double last_ = 0;
};

}  // namespace trainctl
