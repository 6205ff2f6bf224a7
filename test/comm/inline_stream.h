// A stream that runs everything at once on the calling thread, and one with a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/backend/stream.h"

namespace trainctl {

class InlineStream final : public Stream {
 public:
  void enqueue(HostTask task) override {
    try {
      task.run(task.context);
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
  }
  void synchronize() override {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;
};

class ThreadStream final : public Stream {
 public:
  ThreadStream() : thread_([this] { work(); }) {}
  ~ThreadStream() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void enqueue(HostTask task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(task);
    }
    changed_.notify_all();
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const HostTask task = tasks_.front();
      lock.unlock();
      std::exception_ptr error;
      try {
        task.run(task.context);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !error_) error_ = error;
      tasks_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<HostTask> tasks_;
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace trainctl
