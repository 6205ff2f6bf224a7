// The CPU's streams and events: the compute stream runs work at once, the asynchronous one has a thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/backend/immediate_stream.h"

namespace trainctl::cpu {

// Runs tasks in order on its own thread. The queue is a ring that grows to the longest backlog and then stays. After an
// exception the tasks that follow run all the same; the first exception surfaces.
class ThreadStream final : public Stream {
 public:
  ThreadStream();
  ~ThreadStream() override;
  void enqueue(HostTask task) override;
  void synchronize() override;

  // How many tasks were queued so far, and a wait until that many have run. For events.
  std::uint64_t queued();
  void wait_until(std::uint64_t count);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HostTask> ring_;
  std::uint64_t queued_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t done_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: starts when the rest is there
};

std::unique_ptr<Event> make_event();

}  // namespace trainctl::cpu
