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

CheckpointInterval::Agreed CheckpointInterval::agree(std::int64_t step, double now, SaveCost cost, Communicator& world,
                                                     Stream& stream) const {
  const double step_time = (now - last_time_) / static_cast<double>(step - last_step_);
  std::array<double, 3> agreed{cost.stall, cost.write, step_time};
  world.all_reduce({agreed.data(), DType::float64, std::ssize(agreed)}, Reduction::maximum, stream);
  stream.synchronize();
  return {agreed[0], agreed[1], agreed[2]};
}

bool CheckpointInterval::puts_off(std::int64_t step, double now, SaveCost cost, Communicator& world, Stream& stream) {
  constexpr double enough = 0.9;  // times of steps differ a little
  if (failures_ <= 0 || step == last_step_) return false;
  const Agreed agreed = agree(step, now, cost, world, stream);
  const double passed = agreed.step * static_cast<double>(step - last_step_), least = write_times * agreed.write;
  if (passed >= enough * least) return false;
  const double steps = std::clamp(std::round((least - passed) / std::max(agreed.step, 1e-9)), 1.0, 1e15);
  due_ = step + static_cast<std::int64_t>(steps);
  return true;
}

std::string CheckpointInterval::note_save(std::int64_t step, double now, SaveCost cost, Communicator& world,
                                          Stream& stream) {
  if (failures_ <= 0 || step == last_step_) return "";
  const auto [stall, write, step_seconds] = agree(step, now, cost, world, stream);
  const double best = bounded(best_save_interval(stall, failures_), write);
  const double steps = std::clamp(std::round(best / std::max(step_seconds, 1e-9)), 1.0, 1e15);
  due_ = step + static_cast<std::int64_t>(steps);
  last_step_ = step;
  last_time_ = now;
  const double seconds = steps * step_seconds;
  if (told_ > 0 && seconds < 2 * told_ && told_ < 2 * seconds) return "";
  told_ = seconds;
  return format(
      "checkpoint.every: auto: a checkpoint every {}, about {}; a save stops training for {}, and one "
      "failure is expected in {}",
      counted(static_cast<std::int64_t>(steps), "step"), long_time_text(seconds), seconds_text(stall),
      long_time_text(failures_));
}

}  // namespace trainctl
