// Measures the time of each stage of reading samples.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/clock.h"

namespace trainctl {

// read: reads the stored sample; decode: decodes images; transform: resizes and crops; cache: finds samples in the
// cache and writes them to it; augment: applies augmentation, scales, and writes the inputs to the batch; target:
// writes the targets to the batch.
enum class Stage { read, decode, transform, cache, augment, target };
inline constexpr std::size_t stage_count = 6;

// A clock for one thread.
class StageClock {
 public:
  void start() { last_ = seconds_now(); }
  // Adds the time since the last call of lap() or start() to a stage.
  void lap(Stage stage) {
    const double now = seconds_now();
    seconds_of(stage) += now - last_;
    last_ = now;
  }
  // Moves seconds from one stage to another.
  void move(double seconds, Stage from, Stage to) {
    seconds_of(from) -= seconds;
    seconds_of(to) += seconds;
  }
  double seconds(Stage stage) const { return seconds_[static_cast<std::size_t>(stage)]; }

 private:
  double& seconds_of(Stage stage) { return seconds_[static_cast<std::size_t>(stage)]; }

  double last_ = 0;
  std::array<double, stage_count> seconds_{};
};

}  // namespace trainctl
