// Receives the requests to stop of a supervisor on a thread of its own, which never touches the run's directory: it
// also ends a run whose supervisor waits for a file server that does not answer.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "parallel/launch/supervisor/signals.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {

// The ranks that the guard may have to stop.
struct GuardedRanks {
  pid_t launcher = -1;        // the process of mpirun
  std::string status_file;    // in one of `folders`
  std::string flight_folder;  // of the flight records, with the note of the copies in memory; "": nothing is noted
  std::vector<std::string> folders;  // the supervisor's folders for temporary files
  std::string launch;                // the name of the supervisor, by which it knows its copies in memory
  bool stops_in_order = true;        // see SupervisionOptions
  AskedRanks asked;                  // `ready`, `relayed` and the needs are unused: the guard finds them itself
};

// The main thread tells by expect_within() until when it reads the next signal. If it does not, and a request to stop
// has arrived, the guard does what the main thread would do (stopping.h): it relays the request, and when the ranks are
// to be ended, it ends them and this process.
class StopGuard {
 public:
  // `signals` must outlive the object, and is read by its thread alone. Throws std::system_error if no thread can be
  // started.
  explicit StopGuard(const Signals& signals);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

  // As those of Signals, for the main thread.
  int descriptor() const { return received_; }
  int next() const;

  // The main thread reads signals again within this time.
  void expect_within(std::chrono::milliseconds time);

  // Sets the ranks of the present attempt; empty: there are none, but earlier ones may have left copies in memory.
  void watch(std::optional<GuardedRanks> ranks);

 private:
  using Clock = StopRequests::Clock;

  void run(const std::stop_token& ended);
  void receive();
  bool is_stuck(Clock::time_point now);
  void act(Clock::time_point now);
  void stop(GuardedRanks ranks, Clock::time_point now);
  void note_run();
  [[noreturn]] void end(int code, const std::string& message, const GuardedRanks& ranks = {});

  const Signals& signals_;
  int received_ = -1, forward_ = -1;  // a pipe with a byte for each signal
  int wake_ = -1;                     // readable once the thread shall end
  std::mutex mutex_;                  // guards the members up to the empty line
  Clock::time_point expected_ = Clock::now() + std::chrono::seconds(2);
  std::optional<GuardedRanks> ranks_;
  std::string log_, launch_;  // path of the log of the run whose ranks were watched, and the supervisor's name

  StopRequests requests_;  // this and the members below belong to the thread
  bool relayed_ = false;
  StopTime needs_;
  std::optional<Clock::time_point> needs_changed_;
  std::jthread thread_;  // the last member, since it uses the others
};

}  // namespace trainctl
