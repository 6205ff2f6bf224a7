// Plans the attempts of a run after the first one: after a failure, after a request to resize, and when lost hosts can
// take part again.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "parallel/launch/plan.h"
#include "parallel/launch/remote/host_probe.h"
#include "parallel/launch/supervisor/plan_change.h"

namespace trainctl {

struct ClusterOptions;
struct Outcome;

class LaterPlans {
 public:
  // `request` returns the request of the run's command, with the resources of this host as they are now.
  LaterPlans(const ClusterOptions& cluster, std::function<LaunchRequest()> request)
      : cluster_(cluster), request_(std::move(request)) {}

  // Returns the plan of the attempt after the one that ended with `outcome`: on the hosts of the config that answer
  // now. `before`: the plan of that attempt, or the plan to which the run is resized. Throws Error{peer} if too few
  // hosts answer.
  LaunchPlan next(const LaunchPlan& before, const Outcome& outcome);

  // Returns the plan with which the run shall go on instead of `now`: as `trainctl resize` has requested, or with hosts
  // that can take part again. Without a plan, the run goes on as before. Does not wait for hosts.
  PlanChange changed(const LaunchPlan& now, const std::string& run_directory);

 private:
  using Clock = std::chrono::steady_clock;

  PlanChange resized(const std::string& run_directory) const;
  std::optional<LaunchPlan> grown(const LaunchPlan& now);
  void wait_longer();
  LaunchRequest request_again(int ranks) const;
  int ranks_on(const LaunchRequest& request, int wanted) const;
  void keep_answering_hosts(LaunchRequest& request, const Outcome& failure, int wanted) const;
  void require_trainable(int ranks) const;
  static void require_space(const std::string& run_directory);

  const ClusterOptions& cluster_;
  std::function<LaunchRequest()> request_;
  std::chrono::seconds first_pause_{5};        // time from a loss of hosts to the first probe
  std::chrono::seconds pause_ = first_pause_;  // time until the next probe
  Clock::time_point next_probe_{};
  std::optional<HostProbe> probe_;  // asks the hosts that are missing
};

}  // namespace trainctl
