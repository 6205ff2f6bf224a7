// Watches mpirun until it ends: relays requests to stop to its ranks, and kills processes that do not end by
// themselves.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/base/supervisor_lock.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/supervisor/copies.h"
#include "parallel/launch/supervisor/launch_name.h"
#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/supervisor/ranks_output.h"
#include "parallel/launch/supervisor/signals.h"
#include "parallel/launch/supervisor/stop_guard.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {

class HostWatch;
class MpirunCommand;
struct Restarts;
struct SupervisionOptions;

// State that persists across all attempts to run the ranks.
struct Supervision {
  Signals signals;
  StopGuard guard{signals};  // receives the signals
  StopRequests requests;
  std::string log;                     // path of the run's log, to which this process also logs; "" before it is known
  std::string launch = launch_name();  // see Situation::launch
  SupervisorLock directory;            // keeps the run's directory while no rank runs
  std::string unwritten_output;        // standard output of the ranks that its reader has not taken yet
  bool copies_left = false;            // whether ranks may have left copies in memory for another attempt
  HostsOfCopies hosts_of_copies;       // where they may have left them
};

class MpirunWatch {
 public:
  // Watches a running mpirun, which `command` has started. If rank 0 is on this host, it must call mark_ready() within
  // plan.start_timeout. `restarts` tells whether the plan shall change. `hosts` watches the ranks.
  MpirunWatch(Supervision& supervision, const ChildProcess& child, const MpirunCommand& command, const LaunchPlan& plan,
              Mpirun& mpirun, const SupervisionOptions& options, const Restarts& restarts, HostWatch& hosts);
  ~MpirunWatch();  // kills all children except those of `hosts`
  MpirunWatch(const MpirunWatch&) = delete;
  MpirunWatch& operator=(const MpirunWatch&) = delete;

  // Waits until mpirun has ended or a verdict was reached. When it returns, no child is left except those of `hosts`.
  void wait();

  // Returns the outcome if this process has ended the ranks, otherwise an empty value.
  const std::optional<Outcome>& verdict() const { return verdict_; }
  // Returns whether the ranks were asked to stop: by the user, or to change the plan.
  bool asked_to_stop() const { return requests_.asked || change_.asked; }
  // Returns the plan for which the ranks were stopped; empty if the plan has not changed.
  const std::optional<LaunchPlan>& changed_plan() const { return changed_plan_; }
  // Returns whether the user has requested that plan.
  bool is_requested() const { return is_requested_; }
  const RanksOutput& output() const { return output_; }
  void show_held_errors() { output_.show_held_errors(); }
  // Returns the rank that ended first, if all ranks run on this host.
  std::optional<int> first_ended() const { return first_ended_; }
  int mpirun_code() const { return code_; }  // 128 + n if signal n ended it

 private:
  void on_signal(int number);
  void reap();
  void note_child(int status);
  void decide();
  void stop();
  void watch_mpirun();
  bool mpirun_lingers();
  void check_for_change();
  const StopRequests& request() const { return requests_.asked ? requests_ : change_; }
  void relay_request();
  void end_late();
  void end_ranks(OutcomeKind kind, ErrorKind error, std::string message);
  std::vector<int> suspended_ranks() const;
  bool start_timed_out() const;
  std::string describe_start_timeout() const;
  const char* start_remedy() const;
  void join_log();
  void keep_directory();
  void watch_ranks();
  void check_ranks();
  void check_hosts();

  Supervision& supervision_;
  const Restarts& restarts_;
  const LaunchPlan& plan_;
  HostWatch& hosts_watch_;
  StopRequests& requests_;
  StopRequests change_;  // the request to stop for a changed plan
  std::optional<LaunchPlan> changed_plan_;
  bool is_requested_ = false;  // whether the user has requested changed_plan_
  std::chrono::steady_clock::time_point next_check_for_change_{};
  Mpirun& mpirun_;
  ChildProcess child_;
  RanksOutput output_;
  std::string status_file_;
  bool first_rank_here_, one_host_;
  bool stops_in_order_;
  std::chrono::milliseconds start_timeout_, timeout_;
  bool hosts_answer_;
  std::vector<Host> hosts_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_child_ = start_;             // last time when mpirun had a child
  std::optional<std::chrono::steady_clock::time_point> run_ended_at_;     // time when the end of the run was noticed
  std::optional<std::chrono::steady_clock::time_point> suspended_since_;  // time when a signal suspended mpirun
  bool warned_of_suspension_ = false;
  AskedRanks asked_;
  std::optional<Outcome> verdict_;
  bool ended_ = false;
  int code_ = 0;
  std::vector<int> processes_;  // processes of all ranks, if they run on this host and are known
  std::vector<int> ranks_;      // descriptors of these processes; -1 after the end of one was seen
  bool saw_end_ = false;        // whether the end of a rank was seen
  std::optional<int> first_ended_;
  std::size_t messages_read_ = 0;  // size of mpirun's messages at the last check
  bool names_cause_ = false;       // whether these messages say why the run ended
};

}  // namespace trainctl
