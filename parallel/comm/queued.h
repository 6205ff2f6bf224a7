// Base class of the communicators in host memory: turns each call into a task of a stream, which runs the blocking
// collective. Calls allocate no memory: the tasks are kept in a ring.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "parallel/comm/call.h"
#include "parallel/comm/call_record.h"

namespace trainctl {

// Calls are made by one thread at a time. The tasks of one communicator must not run at the same time: a caller that
// uses several streams orders them with events.
class QueuedCommunicator : public Communicator {
 public:
  explicit QueuedCommunicator(std::shared_ptr<Attendance> attendance) : attendance_(std::move(attendance)) {}

  void all_reduce(View data, Reduction reduction, Stream& stream) final;
  void reduce_scatter(View data, Reduction reduction, Stream& stream) final;
  void all_gather(View data, Stream& stream) final;
  void all_to_all(View send, View receive, Stream& stream) final;
  void broadcast(View data, int root, Stream& stream) final;
  void send(View data, int peer, Stream& stream) final;
  void receive(View data, int peer, Stream& stream) final;
  void barrier(Stream& stream) final;
  Attendance& attendance() final { return *attendance_; }
  bool recordable() const override { return false; }
  std::vector<int> world_ranks() const final { return record_.world_ranks(); }
  void describe_next(std::string_view text) final { record_.describe_next(text); }
  void set_background() final { record_.set_background(); }

 protected:
  // Runs the blocking collective. Throws Error{peer}; any exception ends the attendance.
  virtual void run(const Call& call) = 0;

  // Lets the calls appear in the rank's flight record. Called in the constructor, on all ranks of this communicator.
  void set_world_ranks(const std::vector<int>& world_ranks) { record_.open(*attendance_, world_ranks); }

  const std::shared_ptr<Attendance>& shared_attendance() const { return attendance_; }

 private:
  struct Task {
    QueuedCommunicator* owner = nullptr;
    Call call;
    FlightEntry entry;
    std::atomic<bool> queued{false};
  };

  void submit(const Call& call, Stream& stream);
  void execute(const Call& call, const FlightEntry& entry);
  [[noreturn]] void refuse() const;

  std::array<Task, 64> ring_;
  std::size_t next_ = 0;
  std::shared_ptr<Attendance> attendance_;
  CallRecord record_;  // its line is used by the task that runs
};

}  // namespace trainctl
