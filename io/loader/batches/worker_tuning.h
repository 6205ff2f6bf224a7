// `workers: auto`: how many of a loader's workers work, by what is waited for them.
#pragma once

#include <algorithm>
#include <cmath>

namespace trainctl {

// Begins with one worker and adds others while more than a twentieth of the time is waited for data. What is waited for
// does not compute, so that its cores are free for workers. None is taken away.
class WorkerTuning {
 public:
  // `most` workers, 1 at least; batches count from a window's first one, and there are more of them than are prepared
  // ahead.
  WorkerTuning(int most, int window) : most_(most), window_(window) {}

  int workers() const { return workers_; }
  // Told of each batch how long it was waited for, in seconds, and the time when it came. Returns whether there are
  // more workers from now on.
  bool add(double waited, double now) {
    constexpr double shortest = 0.02, bearable = 0.05;  // seconds of a window; the share of it that may be waited
    if (workers_ == most_) return false;
    waited_ += waited;
    if (batches_++ == 0) {  // what came before the window's first batch is not counted
      waited_ = 0;
      begin_ = now;
    }
    const double passed = now - begin_;
    if (batches_ <= window_ || passed < shortest) return false;
    const double share = std::min(waited_ / passed, 1.0);
    batches_ = 0;
    if (share <= bearable) return false;
    // So many would just be enough if their work were all that counts; at most twice as many, since it may not be.
    const double enough = share < 0.5 ? std::ceil(workers_ / (1 - share)) : 2.0 * workers_;
    workers_ = std::clamp(static_cast<int>(enough), workers_ + 1, most_);
    return true;
  }

 private:
  int most_, window_, workers_ = 1;
  int batches_ = 0;
  double waited_ = 0, begin_ = 0;
};

}  // namespace trainctl
