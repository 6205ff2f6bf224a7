// Waiting for mpirun, and relaying requests to stop to its ranks.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/process.h"
#include "parallel/launch/ranks_output.h"
#include "parallel/launch/stopping.h"

namespace trainctl {

// The signals that a supervisor waits for, as a descriptor; they do nothing else while the object lives, and requests
// to stop are ignored from its end on. Signals that otherwise end a process are among them, so that none leaves
// children and temporary files behind. Also makes this process the parent of what its children leave behind.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  // The next one that has arrived, or 0.
  int next() const;

 private:
  sigset_t previous_{};
  int descriptor_ = -1;
};

// How a supervisor treats its ranks.
struct SupervisionOptions {
  // A request to stop reaches the ranks; else it ends them at once, since they keep nothing.
  bool stops_in_order = true;
  // The ranks' standard output is collected for the caller instead of being passed on.
  bool holds_output = false;
};

class Supervision {
 public:
  // Supervises a running mpirun. Where rank 0 is on this host, it must call mark_ready() within plan.start_timeout.
  Supervision(const Signals& signals, const ChildProcess& child, std::string status_file, const LaunchPlan& plan,
              Mpirun& mpirun, const SupervisionOptions& options);
  ~Supervision();  // no child is left
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  // Returns when mpirun has ended, or the user wants to wait no longer; then no child is left.
  void wait();

  // How the run ended, if this process has ended the ranks; the message is for the user.
  const std::optional<RankStatus>& verdict() const { return verdict_; }
  bool asked_to_stop() const { return stopping_.asked.has_value(); }
  const RanksOutput& said() const { return said_; }
  void show_held_errors() { said_.show_held_errors(); }
  // The rank that was seen to end first, where all run here.
  std::optional<int> first_gone() const { return first_gone_; }
  int mpirun_code() const { return code_; }  // 128 + n where signal n ended it

 private:
  void on_signal(int number);
  void reap();
  void note_child(int status);
  void decide();
  void stop();
  void watch_mpirun();
  bool mpirun_lingers();
  void tell_of_stop() const;
  std::string stuck_ranks() const;
  bool start_timed_out() const;
  std::string describe_start_timeout() const;
  void join_log();
  void watch_ranks();
  void see_ranks();

  const Signals& signals_;
  Mpirun& mpirun_;
  ChildProcess child_;
  RanksOutput said_;
  std::string status_file_;
  bool first_rank_here_, one_host_;
  SupervisionOptions options_;
  std::chrono::milliseconds start_timeout_;
  bool hosts_answer_;
  std::vector<Host> hosts_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_child_ = start_;     // when mpirun was last seen with one
  std::optional<std::chrono::steady_clock::time_point> over_;     // when the run was seen to have ended
  std::optional<std::chrono::steady_clock::time_point> stopped_;  // when a signal stopped mpirun itself, which stands
  bool told_of_mpirun_ = false;                                   // that it stands
  Stopping stopping_;
  std::optional<RankStatus> verdict_;
  bool ended_ = false;
  bool in_log_ = false;
  int code_ = 0;
  std::vector<int> ranks_;  // descriptors of their processes; -1 once one has ended
  std::optional<int> first_gone_;
  std::size_t messages_read_ = 0;  // of mpirun's messages, so far,
  bool names_cause_ = false;       // and they say why the run ended
};

}  // namespace trainctl
