// The learning rate rises to the optimizer's and falls far below it until the end of the run (Smith and Topin, 2019:
// "Super-convergence"), by PyTorch's formula for OneCycleLR.
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
  // Between two rates, at a share of the way.
  double between(double first, double last, double share) const {
    const double moved = anneal_strategy == Anneal::linear ? share : 0.5 * (1 - std::cos(std::numbers::pi * share));
    return first + (last - first) * moved;
  }
};

double OneCycleSchedule::rate(double base, const ScheduleTime& time, double) const {
  const double total = steps_of_run(time, "one_cycle");
  const double step = std::min(static_cast<double>(time.step), total - 1);
  const double top = pct_start * total - 1;  // the step of the full rate; it may lie between steps
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
  return Keys<OneCycleSchedule>("one_cycle",
                                "The learning rate rises to the optimizer's, then falls far below it until the end of "
                                "the run (Smith and Topin, 2019), as PyTorch's OneCycleLR; the momentum stays.")
      .key("pct_start", &OneCycleSchedule::pct_start, "Share of the run in which the learning rate rises.",
           between(0, 1))
      .key("div_factor", &OneCycleSchedule::div_factor, "The optimizer's learning rate over that of the first step.",
           more_than(0))
      .key("final_div_factor", &OneCycleSchedule::final_div_factor,
           "The learning rate of the first step over that of the last one.", more_than(0))
      .key("anneal_strategy", &OneCycleSchedule::anneal_strategy,
           "Whether rise and fall are halves of a cosine or straight.");
}

}  // namespace trainctl
