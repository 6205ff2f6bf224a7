// The CPU's streams and events: the compute stream is an ImmediateStream, the asynchronous stream a ThreadStream.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/backend/immediate_stream.h"

namespace trainctl::cpu {

// Runs tasks in order on its own thread. Kernels compute on that thread alone. The queue is a ring buffer that grows to
// the longest backlog and never shrinks. After an exception later tasks still run; synchronize() rethrows the first
// exception.
class ThreadStream final : public Stream {
 public:
  ThreadStream();
  ~ThreadStream() override;
  void enqueue(HostTask task) override;
  void synchronize() override;

  // For events: the number of tasks queued so far, and a wait until that many tasks have run.
  std::uint64_t queued();
  void wait_until(std::uint64_t count);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HostTask> ring_;
  std::atomic<std::uint64_t> queued_{0};  // changed under the mutex
  std::uint64_t started_ = 0;
  std::atomic<std::uint64_t> done_{0};  // changed under the mutex
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // the last member, so that the thread starts after the others are initialised
};

std::unique_ptr<Event> make_event();

}  // namespace trainctl::cpu
