// Computes the interval of checkpoints from the measured cost of a save.
#include "parallel/trainer/loop/checkpoint_interval.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/backend/communicator.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

double best_save_interval(double cost, double failures) {
  if (cost >= 2 * failures) return failures;
  const double ratio = cost / (2 * failures);
  return std::sqrt(2 * cost * failures) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

void CheckpointInterval::begin(std::int64_t step, double now) {
  due_ = step + first_steps;
  last_step_ = step;
  last_time_ = now;
}

std::int64_t CheckpointInterval::next(std::int64_t step) const {
  return failures_ > 0 ? std::max(due_, step + 1) : next_multiple(step, every_);
}

bool CheckpointInterval::is_due(std::int64_t before, std::int64_t step) const {
  return failures_ > 0 ? step >= due_ : passed_multiple(before, step, every_);
}

std::string CheckpointInterval::note_save(std::int64_t step, double now, SaveCost cost, Communicator& world,
                                          Stream& stream) {
  if (failures_ <= 0 || step == last_step_) return "";
  const double step_time = (now - last_time_) / static_cast<double>(step - last_step_);
  std::array<double, 3> agreed{cost.stall, cost.write, step_time};
  world.all_reduce({agreed.data(), DType::float64, std::ssize(agreed)}, Reduction::maximum, stream);
  stream.synchronize();
  const auto [stall, write, step_seconds] = agreed;
  const double best = bounded(best_save_interval(stall, failures_), write);
  const double steps = std::clamp(std::round(best / std::max(step_seconds, 1e-9)), 1.0, 1e15);
  due_ = step + static_cast<std::int64_t>(steps);
  last_step_ = step;
  last_time_ = now;
  const double seconds = steps * step_seconds;
  if (told_ > 0 && seconds < 2 * told_ && told_ < 2 * seconds) return "";
  told_ = seconds;
  return format(
      "checkpoint.every: auto: a checkpoint every {} steps, about {}; a save stops training for {}, and one "
      "failure is expected in {}",
      static_cast<std::int64_t>(steps), long_time_text(seconds), seconds_text(stall), long_time_text(failures_));
}

}  // namespace trainctl
