// Plans the attempts of a run after the first one.
#include "parallel/launch/later_plans.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/remote/asked_hosts.h"
#include "parallel/launch/slurm/nodes.h"
#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/supervisor/resize.h"

namespace trainctl {
namespace {

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the hosts of a plan that can be asked whether they take part: those that the user has named, or the nodes of
// the SLURM job, without this one.
std::vector<std::string> others_of(const LaunchPlan& plan, const LaunchRequest& request) {
  return plan.hosts.empty() ? other_nodes(plan.nodes, request.variables) : plan.other_hosts;
}

void leave_out(LaunchRequest& request, const std::string& host) {
  if (request.hosts.empty() && request.slurm) return request.slurm->leave_out(host);
  std::erase_if(request.hosts, [&](const Host& each) { return each.name == host; });
}

// Whether the run can go on with a part of its hosts.
bool can_lose_hosts(const LaunchRequest& request, const LaunchPlan& plan) {
  if (request.tf_config || host_check(request, plan).agent.empty()) return false;
  return request.hosts.empty() ? !others_of(plan, request).empty() : request.hosts.size() > 1;
}

}  // namespace

LaunchPlan LaterPlans::next(const LaunchPlan& before, const Outcome& outcome) {
  LaunchRequest request = request_again(before.wanted_ranks);
  if (request.tf_config || (request.hosts.size() < 2 && !request.slurm)) return before;
  if (!can_lose_hosts(request, plan_launch(request))) return before;
  keep_answering_hosts(request, outcome, before.wanted_ranks);
  LaunchPlan plan = plan_launch(request);
  ask_hosts(request, false, plan);
  plan.wanted_ranks = before.wanted_ranks;
  probe_.reset();
  pause_ = first_pause_;
  next_probe_ = Clock::now() + pause_;
  return plan;
}

PlanChange LaterPlans::changed(const LaunchPlan& now, const std::string& run_directory) {
  PlanChange change = resized(run_directory);
  if (change.plan || now.ranks >= now.wanted_ranks || Clock::now() < next_probe_) return change;
  try {
    change.plan = grown(now);
  } catch (const Error& error) {  // the run trains, whatever the hosts' file says now
    log::debug(error.what());
    wait_longer();
  }
  return change;
}

void LaterPlans::wait_longer() {
  constexpr std::chrono::seconds longest_pause(600);
  probe_.reset();
  pause_ = std::min(2 * pause_, longest_pause);
  next_probe_ = Clock::now() + pause_;
}

// Returns the plan that `trainctl resize` has requested for the run in this directory, or the request if it cannot be
// met, with a warning. Takes the request, if there is one. Contacts no hosts.
PlanChange LaterPlans::resized(const std::string& run_directory) const {
  const std::optional<int> ranks = requested_ranks_of(run_directory);
  if (!ranks || !remove_request(run_directory)) return {};
  try {
    require_trainable(*ranks);
    LaunchPlan plan = plan_launch(request_again(*ranks));
    require_space(run_directory);
    for (const std::string& warning : plan.warnings) log::warning(warning);
    return {.plan = std::move(plan), .is_requested = true};
  } catch (const Error& error) {
    log::warning(
        format("the run goes on as before, since it cannot train on {}: {}", counted(*ranks, "rank"), error.what()));
    return {.refused = RefusedResize{*ranks, error.what()}};
  }
}

// Returns a plan with more ranks if the run has lost hosts and some of them can take part again; otherwise an empty
// value. Asks the missing hosts less and less often: the pause doubles after each answer. The first pause doubles
// whenever the run grows, so that a host that fails again and again interrupts the run less and less often.
std::optional<LaunchPlan> LaterPlans::grown(const LaunchPlan& now) {
  const std::optional<std::vector<std::string>> back = probe_ ? probe_->available() : std::nullopt;
  if (probe_ && !back) return {};
  LaunchRequest request = request_again(now.wanted_ranks);
  const LaunchPlan whole = plan_launch(request);
  const std::vector<std::string> all = others_of(whole, request), present = others_of(now, request);
  if (!probe_) {
    std::vector<std::string> missing;
    std::copy_if(all.begin(), all.end(), std::back_inserter(missing),
                 [&](const std::string& host) { return !contains(present, host); });
    if (missing.empty()) {
      wait_longer();
    } else {
      probe_.emplace(missing, host_check(request, whole));
    }
    return {};
  }
  wait_longer();
  for (const std::string& host : all) {
    if (!contains(present, host) && !contains(*back, host)) leave_out(request, host);
  }
  const int ranks = ranks_on(request, now.wanted_ranks);
  if (ranks <= now.ranks) return {};
  first_pause_ *= 2;
  for (const std::string& host : *back) log::info(format("{} can take part again", host));
  request.ranks = ranks;
  LaunchPlan plan = plan_launch(request);
  plan.wanted_ranks = now.wanted_ranks;
  return plan;
}

LaunchRequest LaterPlans::request_again(int ranks) const {
  LaunchRequest request = request_();
  request.ranks = ranks;
  request.always_supervised = true;
  return request;
}

// Returns the largest number of ranks in whole replicas that the hosts of a request have slots for, at most `wanted`.
int LaterPlans::ranks_on(const LaunchRequest& request, int wanted) const {
  const int replica = cluster_.ranks_of_replica;
  return std::min(wanted, slots_of(request)) / replica * replica;
}

// Removes from a request the host that a failed attempt has lost and those that do not answer, and limits its ranks to
// those that can train on the other hosts: a whole number of replicas, and at most `wanted`. Throws Error{peer} if too
// few ranks are left.
void LaterPlans::keep_answering_hosts(LaunchRequest& request, const Outcome& failure, int wanted) const {
  const LaunchPlan plan = plan_launch(request);
  const std::vector<std::string> others = others_of(plan, request);
  auto lost = unavailable_hosts(others, host_check(request, plan));
  if (lost.empty() && (failure.kind == OutcomeKind::host_lost || failure.kind == OutcomeKind::host_unreachable)) {
    for (const std::string& host : others) {
      if (without_user(host) == failure.host) lost.emplace_back(host, "the attempt before was lost by it");
    }
  }
  for (const auto& [host, problem] : lost) {
    log::warning(format("{} cannot take part: {}", host, problem));
    leave_out(request, host);
  }
  const int ranks = ranks_on(request, wanted), least = std::max(cluster_.restarts.min_ranks, cluster_.ranks_of_replica);
  if (ranks < std::min(least, wanted)) {
    throw Error(
        ErrorKind::peer,
        format("the hosts that answer have {} slots, and the run needs at least {} ranks", slots_of(request), least),
        "start the run again when the hosts are back");
  }
  request.ranks = ranks;
}

// Throws Error{resource} if the disk has no space for another checkpoint like the newest one: ranks that stop without a
// checkpoint would lose steps.
void LaterPlans::require_space(const std::string& run_directory) {
  namespace fs = std::filesystem;
  std::int64_t bytes = record_bytes_of_run;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_directory + "/checkpoints/last", none)) {
    if (entry.is_regular_file(none)) bytes += static_cast<std::int64_t>(entry.file_size(none));
  }
  const std::string why = disk_space_problem(run_directory, bytes);
  if (why.empty()) return;
  throw Error(ErrorKind::resource, "the checkpoint from which it would go on cannot be written: " + why,
              "free some space there, and request it again");
}

// Throws Error{config} if the strategy does not permit this number of ranks.
void LaterPlans::require_trainable(int ranks) const {
  const int replica = cluster_.ranks_of_replica;
  if (ranks % replica != 0) {
    throw Error(ErrorKind::config, format("a replica has {}", counted(replica, "rank")),
                format("request a multiple of {}", replica));
  }
  if (cluster_.fixed_ranks && ranks != *cluster_.fixed_ranks) {
    throw Error(ErrorKind::config, format("strategy.data fixes the number of ranks at {}", *cluster_.fixed_ranks),
                "leave `data` out of the strategy");
  }
  if (cluster_.max_ranks && ranks > *cluster_.max_ranks) {
    throw Error(ErrorKind::config,
                format("the strategy has logical shards for at most {}", counted(*cluster_.max_ranks, "rank")),
                "request fewer ranks");
  }
}

}  // namespace trainctl
