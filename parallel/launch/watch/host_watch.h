// The supervisor's watch over the ranks of an attempt: an agent on each host tells what the ranks do.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/options.h"
#include "parallel/launch/supervisor/outcome.h"

namespace trainctl {

struct LaunchPlan;

struct HostWatchOptions {
  HangTimeout hang_timeout = HangChoice::none;  // none: no agent is started
  // The command, with its first arguments, of an agent on this host; other hosts have the same program.
  std::vector<std::string> agent;
  // The lease of the ranks on other hosts; empty: cluster.timeout, but at least 10 s and at most 30 s.
  std::optional<std::chrono::milliseconds> lease = {};
};

class HostWatch {
 public:
  // Returns whether the ranks of a plan can be watched: the options say so, and all hosts can be reached.
  static bool can_watch(const LaunchPlan& plan, const HostWatchOptions& options);

  // `folder`: the folder of the flight records; empty: the ranks are not watched, and all functions do nothing. Starts
  // no process yet.
  HostWatch(const LaunchPlan& plan, const HostWatchOptions& options, std::string folder);
  ~HostWatch();  // ends the agents
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  // The folder of the flight records; "": the ranks are not watched.
  std::string folder() const;

  // Starts the agents, once; to be called when the ranks have started.
  void start();

  // Adds the descriptors to wait for.
  void add_sources(std::vector<pollfd>& sources) const;

  // Reads the news. Should be called about once a second while the attempt runs; the leases are renewed also if it is
  // not. Returns the outcome if ranks hang; never if `judges` is false, as while ranks stop.
  std::optional<Outcome> check(bool judges);

  // Tells the agents that the user suspends this process, which ends no lease.
  void pause();

  // The processes of this host that talk to the agents, which outlive the ranks.
  std::vector<pid_t> processes() const;

  // Copies the flight records into `flight` in the run's directory, those of other hosts through the agents, in a
  // limited time. Replaces the records of an earlier attempt. A record that cannot be copied is left out.
  void collect(const std::string& run_directory);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace trainctl
