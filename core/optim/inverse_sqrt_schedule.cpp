// The learning rate falls with the inverse square root of the step after the warm-up (Vaswani et al., 2017: "Attention
// is all you need").
#include <algorithm>
#include <cmath>

#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

struct InverseSqrtSchedule final : ScheduleOptions {
 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override {
    const double full = std::max(warmup, 1.0);
    return base * std::sqrt(full / std::max(static_cast<double>(time.step + 1), full));
  }
};

}  // namespace

Section inverse_sqrt_schedule() {
  return schedule_keys<InverseSqrtSchedule>(
      "inverse_sqrt",
      "After warm-up of W steps the learning rate is multiplied by sqrt(W / t) in the t-th step of the run (Vaswani et "
      "al., 2017).");
}

}  // namespace trainctl
