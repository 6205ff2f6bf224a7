// Attendance: the deadline of all waits for other ranks, and the check of which ranks still answer after it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

class FlightRecord;

// All communicators of a rank share one object: split() passes it on to the communicator that it makes. Several threads
// may call it. This base class serves a rank without peers.
class Attendance {
 public:
  // `deadline` is the longest wait for other ranks; zero means no limit.
  explicit Attendance(std::chrono::milliseconds deadline = {}) : deadline_(deadline) {}
  virtual ~Attendance() = default;
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  std::chrono::milliseconds deadline() const { return deadline_.load(std::memory_order_relaxed); }
  // Sets another deadline, also for waits that have begun. All ranks set the same one after they have
  // waited for each other.
  void set_deadline(std::chrono::milliseconds deadline) { deadline_.store(deadline, std::memory_order_relaxed); }

  // Tells the ranks that ask for an answer that this rank is running. Returns immediately. Every wait for other ranks
  // calls this function repeatedly.
  virtual void answer() {}
  // Asks all ranks for an answer, waits for roll_call_time() at most, and returns the world ranks that have not
  // answered. A rank that waits for others answers; a rank that is stopped, hangs or has ended does not. Later calls
  // return the same ranks.
  virtual std::vector<int> absent() { return {}; }
  // The ranks as text for messages: "rank 3", "ranks 2, 3", or "rank 3 on node2" if the ranks run on several hosts.
  virtual std::string name(const std::vector<int>& ranks) const;

  // Throws Error{peer} for a wait that has missed its deadline, or that cannot succeed because has_ended(). `what`
  // names the operation that waited, and `awaited` holds the world ranks that it waited for (empty: unknown). These
  // ranks may themselves be waiting for others, so the error names the absent() ranks, and `awaited` only if all ranks
  // answer.
  [[noreturn]] void report_missing(std::string_view what, const std::vector<int>& awaited = {});
  // Throws Error{peer} for a wait for a rank that has given up. The error names other absent() ranks instead, if there
  // are any.
  [[noreturn]] void report_gone(std::string_view what, int rank);

  // Records that a communicator of this rank has failed. The rank's other waits then end too, since their peers will
  // not arrive. Only the first reason is kept.
  void end(std::string_view reason);
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  std::string reason() const;

  // The rank's flight record, to which its communicators and its engine write; null: none. It is set once, by the
  // rank's main thread, and must outlive the communicators.
  void set_flight(FlightRecord* flight) { flight_.store(flight, std::memory_order_release); }
  FlightRecord* flight() const { return flight_.load(std::memory_order_acquire); }
  // Returns the number, from 1, of a new communicator of these world ranks. Ranks make communicators in the same order,
  // so that the number is the same on all of them.
  int number_communicator(const std::vector<int>& world_ranks);

 protected:
  // How long absent() waits for answers: long enough for a rank on a busy machine, short compared with usual deadlines.
  std::chrono::milliseconds roll_call_time() const;

 private:
  [[noreturn]] void report(std::string_view what, const std::vector<int>& ranks, std::string_view more) const;

  std::atomic<std::chrono::milliseconds> deadline_;
  std::atomic<bool> has_ended_{false};
  std::atomic<FlightRecord*> flight_{nullptr};
  mutable std::mutex mutex_;
  std::string reason_;                             // guarded by the mutex
  std::map<std::vector<int>, int> communicators_;  // number of communicators of each group of ranks; likewise
};

// One wait for other ranks.
class PeerWait {
 public:
  // `longer` is added to the deadline.
  explicit PeerWait(Attendance& attendance, std::chrono::milliseconds longer = {})
      : attendance_(attendance), longer_(longer) {}

  // Must be called at least ten times a second until the awaited event has happened. Returns false once the deadline
  // has passed since the first call, or a communicator of this rank has failed.
  bool goes_on();
  // The time from the first call of goes_on() to the last one.
  std::chrono::nanoseconds waited() const { return last_ - start_; }

 private:
  using Clock = std::chrono::steady_clock;

  Attendance& attendance_;
  std::chrono::milliseconds longer_;
  Clock::time_point start_, answered_, last_;
  bool has_begun_ = false;
};

}  // namespace trainctl
