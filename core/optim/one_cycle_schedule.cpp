// The learning rate rises to the optimizer's learning rate and falls far below it until the end of the run (Smith and
// Topin, 2019: "Super-convergence"), by PyTorch's formula for OneCycleLR.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/optim/schedule_keys.h"

namespace trainctl {
namespace {

enum class Anneal { cosine, linear };

struct OneCycleSchedule final : ScheduleOptions {
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
  Anneal anneal_strategy = Anneal::cosine;

  bool needs_length() const override { return true; }

 protected:
  double rate(double base, const ScheduleTime& time, double warmup) const override;

 private:
  // Interpolates between two rates; `share` is 0 at the first rate and 1 at the last rate.
  double between(double first, double last, double share) const {
    const double moved = anneal_strategy == Anneal::linear ? share : 0.5 * (1 - std::cos(std::numbers::pi * share));
    return first + (last - first) * moved;
  }
};

double OneCycleSchedule::rate(double base, const ScheduleTime& time, double) const {
  const double total = steps_of_run(time, "one_cycle");
  const double step = std::min(static_cast<double>(time.step), total - 1);
  const double top = pct_start * total - 1;  // the step of the full rate; may be fractional
  const double first = base / div_factor;
  if (step < top) return between(first, base, step / top);
  return between(base, first / final_div_factor, step > top ? (step - top) / (total - 1 - top) : 0.0);
}

}  // namespace

template <>
struct EnumNames<Anneal> {
  static constexpr EnumName<Anneal> names[] = {{Anneal::cosine, "cosine"}, {Anneal::linear, "linear"}};
};

Section one_cycle_schedule() {
  return Keys<OneCycleSchedule>(
             "one_cycle",
             "The learning rate rises to the optimizer's learning rate, then falls far below it until the end of the "
             "run (Smith and Topin, 2019), as with PyTorch's OneCycleLR; the momentum does not change.")
      .key("pct_start", &OneCycleSchedule::pct_start, "Share of the run in which the learning rate rises.",
           between(0, 1))
      .key("div_factor", &OneCycleSchedule::div_factor,
           "The optimizer's learning rate divided by the learning rate of the first step.", more_than(0))
      .key("final_div_factor", &OneCycleSchedule::final_div_factor,
           "The learning rate of the first step divided by the learning rate of the last step.", more_than(0))
      .key("anneal_strategy", &OneCycleSchedule::anneal_strategy,
           "Whether the rise and the fall follow half a cosine or a straight line.");
}

}  // namespace trainctl
