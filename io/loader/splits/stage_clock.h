// The time that each stage of reading samples takes.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/clock.h"

namespace trainctl {

// read: a sample as it is stored; decode: images; transform: resizing and cropping; cache: finding samples in `cache`
// and keeping them there; augment: what is done at random, scaling, and writing to the batch; target: likewise.
enum class Stage { read, decode, transform, cache, augment, target };
inline constexpr std::size_t stage_count = 6;

// A clock that runs on one thread.
class StageClock {
 public:
  void start() { last_ = seconds_now(); }
  // Counts the time since the last call of lap() or start() for a stage.
  void lap(Stage stage) {
    const double now = seconds_now();
    seconds_of(stage) += now - last_;
    last_ = now;
  }
  // Counts seconds of one stage for another one.
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
