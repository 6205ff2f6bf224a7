// Watches mpirun until it ends: relays requests to stop to its ranks, and ends what does not end by itself.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/supervisor/ranks_output.h"
#include "parallel/launch/supervisor/signals.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {

struct LaunchPlan;
struct SupervisionOptions;

// What outlives the attempts to run the ranks.
struct Supervision {
  Signals signals;
  StopRequests requests;
  std::string log;  // of the run, to which this process logs too; "" as long as it does not
};

class MpirunWatch {
 public:
  // Watches a running mpirun. Where rank 0 is on this host, it must call mark_ready() within plan.start_timeout.
  MpirunWatch(Supervision& supervision, const ChildProcess& child, std::string status_file, const LaunchPlan& plan,
              Mpirun& mpirun, const SupervisionOptions& options);
  ~MpirunWatch();  // no child is left
  MpirunWatch(const MpirunWatch&) = delete;
  MpirunWatch& operator=(const MpirunWatch&) = delete;

  // Returns when mpirun has ended, or the user wants to wait no longer; then no child is left.
  void wait();

  // The outcome, if this process has ended the ranks.
  const std::optional<Outcome>& verdict() const { return verdict_; }
  bool asked_to_stop() const { return requests_.asked.has_value(); }
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
  void relay_request();
  void end_late();
  void end_ranks(OutcomeKind kind, ErrorKind error, std::string message);
  std::vector<int> suspended_ranks() const;
  bool start_timed_out() const;
  std::string describe_start_timeout() const;
  void join_log();
  void watch_ranks();
  void see_ranks();

  Supervision& supervision_;
  StopRequests& requests_;
  Mpirun& mpirun_;
  ChildProcess child_;
  RanksOutput said_;
  std::string status_file_;
  bool first_rank_here_, one_host_;
  bool stops_in_order_;
  std::chrono::milliseconds start_timeout_;
  bool hosts_answer_;
  std::vector<Host> hosts_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_child_ = start_;    // when mpirun was last seen with one
  std::optional<std::chrono::steady_clock::time_point> over_;    // when the run was seen to have ended
  std::optional<std::chrono::steady_clock::time_point> stands_;  // since when mpirun itself stands, by a signal
  bool told_of_mpirun_ = false;                                  // of that
  AskedRanks asked_;
  std::optional<Outcome> verdict_;
  bool ended_ = false;
  int code_ = 0;
  std::vector<int> ranks_;  // descriptors of their processes; -1 once one has ended
  std::optional<int> first_gone_;
  std::size_t messages_read_ = 0;  // of mpirun's messages, so far,
  bool names_cause_ = false;       // and they say why the run ended
};

}  // namespace trainctl
