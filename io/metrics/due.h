// When a step is to be reported: every so many steps, epochs or seconds, and for people not too often.
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

  // Called once for each step; `now` in seconds of any clock. In steps: on their multiples. In epochs: on the step that
  // reaches a multiple. In seconds: on the first step so long after the last one that was due, or after the first.
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

// How many lines of steps a person wants to read: the first ones as they come, a sign of life, then a line every few
// seconds, and once a minute in a long run.
class LineRate {
 public:
  // Called for each step that is due, at `now` in seconds of any clock: whether it has a line.
  bool operator()(double now) {
    if (std::isnan(start_)) start_ = now;
    const double interval = std::clamp((now - start_) / 20, 5.0, 60.0);
    if (lines_ >= at_once && now - last_ < interval) return false;
    ++lines_;
    last_ = now;
    return true;
  }

 private:
  static constexpr int at_once = 10;

  int lines_ = 0;
  double start_ = std::numeric_limits<double>::quiet_NaN();
  double last_ = 0;
};

}  // namespace trainctl
