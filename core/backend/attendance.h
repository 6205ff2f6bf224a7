// Whether the ranks of a run still answer: the one deadline of all waits for other ranks, and who is missing after it.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// One object for all communicators of a rank: those that split() makes share it with the one that they come from. Its
// calls may come from several threads. The class itself is that of a rank without peers.
class Attendance {
 public:
  // `deadline`: the longest wait for other ranks; zero: no limit.
  explicit Attendance(std::chrono::milliseconds deadline = {}) : deadline_(deadline) {}
  virtual ~Attendance() = default;
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  std::chrono::milliseconds deadline() const { return deadline_; }

  // Every wait for other ranks calls this now and then: tells the ranks that ask for it that this rank is there.
  // Returns at once.
  virtual void answer() {}
  // Asks all ranks whether they are there, for roll_call_time() at most; the world's ranks that have not answered. A
  // rank that waits for others answers; one that is stopped, stuck or gone does not. Later calls return the same.
  virtual std::vector<int> absent() { return {}; }
  // "rank 3", with its host if the ranks run on several: "rank 3 on node2". "ranks 2, 3" of several.
  virtual std::string name(const std::vector<int>& ranks) const;

  // Throws the Error{peer} of a wait that has missed its deadline, or that cannot end since has_ended(). `what` was
  // waited for, from the world's ranks `awaited` (empty: not known). These need not be the ones to blame: they may wait
  // themselves. So the error names absent() ranks, and `awaited` only if all ranks answer.
  [[noreturn]] void report_missing(std::string_view what, const std::vector<int>& awaited = {});
  // Throws the Error{peer} of a wait for a rank that has given up, which names absent() ranks if there are others.
  [[noreturn]] void report_gone(std::string_view what, int rank);

  // A communicator of this rank has failed: its other waits end too, since their peers will not come any more. The
  // first reason is kept.
  void end(std::string_view reason);
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  std::string reason() const;

 protected:
  // Long enough for a rank that a busy machine delays, short beside usual deadlines.
  std::chrono::milliseconds roll_call_time() const;

 private:
  [[noreturn]] void report(std::string_view what, const std::vector<int>& ranks, std::string_view more) const;

  std::chrono::milliseconds deadline_;
  std::atomic<bool> has_ended_{false};
  mutable std::mutex mutex_;
  std::string reason_;  // under the mutex
};

// One wait for other ranks.
class PeerWait {
 public:
  // `longer`: by how much the wait may last longer than the deadline.
  explicit PeerWait(Attendance& attendance, std::chrono::milliseconds longer = {})
      : attendance_(attendance), longer_(longer) {}

  // Called after a look in vain, ten times a second at least. False once the deadline has passed since the first call,
  // or a communicator of this rank has failed.
  bool goes_on();
  // From the first call of goes_on() to the last one.
  std::chrono::nanoseconds waited() const { return last_ - start_; }

 private:
  using Clock = std::chrono::steady_clock;

  Attendance& attendance_;
  std::chrono::milliseconds longer_;
  Clock::time_point start_, answered_, last_;
  bool has_begun_ = false;
};

}  // namespace trainctl
