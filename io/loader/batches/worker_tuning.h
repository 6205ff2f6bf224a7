// `workers: auto`: chooses how many of a loader's workers are awake, by the time that training waits for data.
#pragma once

#include <algorithm>
#include <cmath>

namespace trainctl {

// Begins with one worker and adds others while training waits for data for more than a twentieth of the time. While it
// waits, its cores are free for more workers. Workers are never removed.
class WorkerTuning {
 public:
  // `max_workers` is at least 1. `window` is the number of batches after which the waits are evaluated; it must be
  // larger than the number of batches that are prepared ahead.
  WorkerTuning(int max_workers, int window) : max_workers_(max_workers), window_(window) {}

  int workers() const { return workers_; }
  // Called after each batch with the seconds that next() waited for it, and the time when it arrived. Returns whether
  // more workers are awake from now on.
  bool add(double waited, double now) {
    constexpr double shortest = 0.02, bearable = 0.05;  // seconds of a window; share of the time that waits may take
    if (workers_ == max_workers_) return false;
    waited_ += waited;
    if (batches_++ == 0) {  // the wait for the window's first batch is not counted
      waited_ = 0;
      begin_ = now;
    }
    const double passed = now - begin_;
    if (batches_ <= window_ || passed < shortest) return false;
    const double share = std::min(waited_ / passed, 1.0);
    batches_ = 0;
    if (share <= bearable) return false;
    // This number of workers is just sufficient if the rate is proportional to the number of workers. The number is at
    // most doubled, since the rate may be limited otherwise.
    const double enough = share < 0.5 ? std::ceil(workers_ / (1 - share)) : 2.0 * workers_;
    workers_ = std::clamp(static_cast<int>(enough), workers_ + 1, max_workers_);
    return true;
  }

 private:
  int max_workers_, window_, workers_ = 1;
  int batches_ = 0;
  double waited_ = 0, begin_ = 0;
};

}  // namespace trainctl
