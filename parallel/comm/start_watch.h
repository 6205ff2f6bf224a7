// A watch over a start that waits for others and has no deadline of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace trainctl {

// From its construction to its end. Lasts that longer than `limit`, `late` is called once, on a thread of its own.
class StartWatch {
 public:
  // Zero, or no `late`: no watch.
  StartWatch(std::chrono::milliseconds limit, std::function<void()> late) {
    if (limit.count() == 0 || !late) return;
    thread_ = std::jthread([this, limit, late = std::move(late)](const std::stop_token& ended) {
      std::unique_lock lock(mutex_);
      condition_.wait_for(lock, ended, limit, [] { return false; });
      if (!ended.stop_requested()) late();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any condition_;
  std::jthread thread_;  // the last: its end comes first
};

}  // namespace trainctl
