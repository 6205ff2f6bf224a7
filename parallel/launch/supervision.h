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

  // Why the ranks were not waited for any longer, having not started: names the hosts that do not answer, where mpirun
  // still waits for these. "" where they started or ended.
  const std::string& why_not_started() const { return why_not_started_; }
  bool stopped_at_once() const { return stopped_at_once_; }
  const std::string& output() const { return output_; }      // what is held
  int output_error() const { return output_error_; }         // errno of standard output, or 0
  const std::string& messages() const { return messages_; }  // mpirun's own
  // Standard error of the ranks (in fact of MPI and the loader) from before they were ready: it is held, since it
  // explains why they never become ready. Empty once it has been shown.
  std::string_view held_errors() const { return shown_ ? std::string_view() : backlog_; }
  void show_held_errors();
  // The rank that was seen to end first, where all run here.
  std::optional<int> first_gone() const { return first_gone_; }
  const std::string& last_words() const { return last_words_; }  // the end of what the ranks have written
  int mpirun_code() const { return code_; }                      // 128 + n where signal n ended it

 private:
  void on_signal(int number);
  void reap();
  bool ranks_handle_signals() const;
  bool mpirun_hangs();
  bool start_timed_out() const;
  std::string describe_start_timeout() const;
  bool holds_errors() const;
  std::string without_own_words(std::string_view text);
  void forward_output();
  void forward_errors();
  void write_backlog();
  void collect_messages();
  void join_log();
  void watch_ranks();
  void see_ranks();

  const Signals& signals_;
  Mpirun& mpirun_;
  ChildProcess child_;
  std::string status_file_;
  bool first_rank_here_, one_host_;
  SupervisionOptions options_;
  std::chrono::milliseconds start_timeout_;
  std::vector<Host> hosts_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_child_ = start_;  // when mpirun was last seen with one
  std::chrono::steady_clock::time_point request_;              // when it came
  bool requested_ = false;
  bool relayed_ = false;
  bool stopped_at_once_ = false;
  bool ended_ = false;
  bool output_closed_ = false;
  bool errors_closed_ = false;
  bool messages_closed_ = false;
  bool in_log_ = false;
  int code_ = 0;
  int output_error_ = 0;
  std::vector<int> ranks_;  // descriptors of their processes; -1 once one has ended
  std::optional<int> first_gone_;
  std::string output_;
  std::string backlog_;  // standard error that is held, or that its reader has not taken yet
  std::string last_words_;
  std::string messages_;
  std::string why_not_started_;
  bool shown_ = false;  // standard error is passed on as it comes; before, it is held
};

}  // namespace trainctl
