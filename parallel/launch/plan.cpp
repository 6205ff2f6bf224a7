// Plans the ranks and their hosts for a request.
#include "parallel/launch/plan.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>

#include "core/backend/select.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "parallel/comm/rank_gpus.h"
#include "parallel/launch/host/network.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/slurm/nodes.h"

namespace trainctl {
namespace {

bool is_local(const std::string& name, const std::string& this_host) {
  const std::string host = without_user(name);
  return host == "localhost" || host == "127.0.0.1" || host == this_host ||
         host == this_host.substr(0, this_host.find('.'));
}

std::string gpus_text(int gpus) { return counted(gpus, "GPU"); }

// Returns the number of ranks. Throws Error{config} if the hosts cannot run them.
int count_ranks(const LaunchRequest& request) {
  const auto automatic = [&](int found) { return std::min(found, request.max_ranks.value_or(found)); };
  const bool hosts_given = !request.hosts.empty();
  if (!hosts_given && !request.slurm) {
    const bool shared = request.ranks && request.gpus > 0 && *request.ranks > request.gpus;
    // With this variable the ranks ask NCCL, whose version decides.
    const bool may_share = request.variables.text("NCCL_MULTI_RANK_GPU_ENABLE") == "1";
    if (shared && request.communication == Transport::nccl && !may_share) {
      throw Error(ErrorKind::config,
                  format("{} ranks, but this host has {}, and NCCL requires one for each rank", *request.ranks,
                         gpus_text(request.gpus)),
                  when_gpus_are_shared);
    }
    return request.ranks.value_or(automatic(automatic_ranks(request.cores.usable, request.gpus)));
  }
  const int slots = slots_of(request);
  const int ranks = request.ranks.value_or(automatic(slots));
  if (ranks <= slots) return ranks;
  if (!hosts_given) {
    throw Error(ErrorKind::config,
                format("{}, but the SLURM job has {}", counted(ranks, "rank"), counted(slots, "task")),
                "ask SLURM for more (--ntasks) or trainctl for fewer (--ranks)");
  }
  std::string list;
  for (const Host& host : request.hosts) list += format("{}{}: {}", list.empty() ? "" : ", ", host.name, host.slots);
  throw Error(ErrorKind::config,
              format("{}, but the hosts have {} ({})", counted(ranks, "rank"), counted(slots, "slot"), list),
              "name more slots or hosts, or ask for fewer ranks");
}

// libgomp's threads spin for milliseconds at the end of every parallel loop. If another process uses one of their
// cores, all other threads spin until that core is free: steps of 0.2 ms then took 100 ms. The setting lets a thread
// sleep after about 50 microseconds; it does not slow down steps on idle cores.
void limit_spinning(LaunchPlan& plan, const Variables& variables) {
  const bool user_decides = variables.has("OMP_WAIT_POLICY") || variables.has("GOMP_SPINCOUNT");
  if (plan.threads > 1 && !user_decides) plan.environment["GOMP_SPINCOUNT"] = "4000";
}

// Returns the hosts of TF_CONFIG's tasks. A task has one slot for each of its GPUs, one slot without GPUs, or more
// slots if `ranks` needs more.
std::vector<Host> tf_hosts(const TfConfig& config, const std::optional<int>& ranks, int gpus) {
  const int tasks = static_cast<int>(config.tasks.size());
  return config.hosts(std::max({1, gpus, (ranks.value_or(1) + tasks - 1) / tasks}));
}

}  // namespace

int slots_of(const LaunchRequest& request) {
  if (!request.hosts.empty() || !request.slurm) return total_slots(request.hosts);
  return static_cast<int>(std::min<std::int64_t>(
      std::accumulate(request.slurm->slots.begin(), request.slurm->slots.end(), std::int64_t{0}), max_slots));
}

int automatic_ranks(int usable_cores, int gpus) { return gpus > 0 ? gpus : usable_cores; }

std::optional<int> requested_ranks(const ClusterOptions& options, const std::string& ranks) {
  if (ranks == "auto") return {};
  if (ranks.empty()) return options.ranks.given;
  int number = 0;
  const auto [end, problem] = std::from_chars(ranks.data(), ranks.data() + ranks.size(), number);
  if (problem != std::errc() || end != ranks.data() + ranks.size() || number < 1 || number > max_slots) {
    throw Error(ErrorKind::config, format("--ranks must be auto or a number from 1 to {}, not '{}'", max_slots, ranks));
  }
  return number;
}

int most_restarts_of(const ClusterOptions& options, const LaunchFlags& flags) {
  return flags.max_restarts.value_or(options.restarts.max);
}

std::optional<TfConfig> tf_config_for(const ClusterOptions& options, const LaunchFlags& flags,
                                      const Variables& variables) {
  const bool hosts_given = !flags.hosts.empty() || !options.hostfile.empty() || !options.hosts.empty();
  if (!flags.reads_tf_config || hosts_given || find_slurm_job(variables)) return {};
  return find_tf_config(variables);
}

LaunchRequest launch_request(const ClusterOptions& options, const LaunchFlags& flags) {
  LaunchRequest request;
  request.variables = Variables::of_process();
  request.mpi = mpi_library();
  request.ranks = requested_ranks(options, flags.ranks);
  request.max_ranks = options.max_ranks;
  request.communication = options.communication;
  request.start_timeout = options.start_deadline();
  request.timeout = options.deadline();
  if (!flags.hosts.empty()) {
    request.hosts = parse_hosts(flags.hosts);
  } else if (!options.hostfile.empty()) {
    request.hosts = read_hostfile(options.hostfile.text);
  } else {
    for (const auto& [name, slots] : options.hosts) request.hosts.push_back({name, slots});
  }
  request.slurm = find_slurm_job(request.variables);
  request.this_host = this_host();
  const auto count_gpus = [&] {
    const FoundGpus found = find_gpus(name_of(options.device));
    request.gpus = static_cast<int>(found.gpus.size());
    if (options.device == DeviceChoice::cuda && request.gpus == 0) refuse_without_gpu(found);
  };
  if ((request.tf_config = tf_config_for(options, flags, request.variables))) {
    count_gpus();  // assumes that all tasks have the same number of GPUs
    request.hosts = tf_hosts(*request.tf_config, request.ranks, request.gpus);
    request.this_host = request.tf_config->tasks[request.tf_config->own].host;
  }
  for (Host& host : request.hosts) {  // this host needs no remote shell and therefore no user
    if (is_local(host.name, request.this_host)) host.name = without_user(host.name);
  }
  request.cores = find_cores(request.variables);
  std::vector<std::string> others;
  for (const Host& host : request.hosts) others.push_back(host.name);
  if (others.empty() && request.slurm && request.slurm->nodes() > 1) others = request.slurm->names;
  std::erase_if(others, [&](const std::string& name) { return is_local(name, request.this_host); });
  if (!others.empty()) request.network = network_of(others);
  request.root = geteuid() == 0;
  if (!request.hosts.empty() || request.slurm) return request;  // this process cannot see the GPUs of other hosts
  count_gpus();
  return request;
}

LaunchPlan plan_launch(const LaunchRequest& request) {
  LaunchPlan plan;
  plan.mpi = request.mpi;
  plan.hosts = request.hosts;
  if (request.hosts.empty() && request.slurm) plan.nodes = request.slurm->names;
  plan.tf_config = request.tf_config;
  plan.start_timeout = request.start_timeout;
  plan.timeout = request.timeout;
  plan.ranks = plan.wanted_ranks = count_ranks(request);
  plan.one_host = plan.hosts.empty() ? plan.ranks == 1 || !request.slurm || request.slurm->nodes() == 1
                                     : plan.hosts.size() == 1 && is_local(plan.hosts.front().name, request.this_host);
  const auto local = std::find_if(plan.hosts.begin(), plan.hosts.end(),
                                  [&](const Host& host) { return is_local(host.name, request.this_host); });
  for (const Host& host : plan.hosts) {
    if (!is_local(host.name, request.this_host)) plan.other_hosts.push_back(host.name);
  }
  plan.first_rank_here = plan.hosts.empty() || local != plan.hosts.end();  // mpirun fills its own host first
  int here = plan.ranks;
  if (!plan.one_host && !plan.hosts.empty()) here = local != plan.hosts.end() ? local->slots : plan.hosts.front().slots;
  if (!plan.one_host && plan.hosts.empty()) here = request.slurm->slots.front();
  here = std::min(here, plan.ranks);
  plan.ranks_here = plan.first_rank_here ? here : 0;
  plan.oversubscribed = plan.one_host && plan.ranks > request.cores.usable;
  plan.threads = std::max(1, request.cores.usable / here);
  plan.cores_here = request.cores.usable;
  if (plan.oversubscribed && plan.hosts.empty()) {
    plan.warnings.push_back(format("{} share {}: each step will take longer than on {}", counted(plan.ranks, "rank"),
                                   counted(request.cores.usable, "core"), counted(request.cores.usable, "rank")));
  }
  if (!request.ranks && request.max_ranks == plan.ranks) {
    LaunchRequest unlimited = request;
    unlimited.max_ranks.reset();
    if (const int found = count_ranks(unlimited); found > plan.ranks) {
      plan.warnings.push_back(
          format("{} of {} possible ranks start: one for each logical shard (strategy.reproducible.shards)", plan.ranks,
                 found));
    }
  }
  limit_spinning(plan, request.variables);
  if (plan.hosts.empty() && request.slurm && !plan.one_host) plan.environment.merge(variables_of(*request.slurm));
  if (plan.ranks > 1 || !plan.one_host || request.always_supervised) mpirun_of(plan.mpi)->compose(plan, request);
  return plan;
}

void require_min_ranks(const ClusterOptions& options, const LaunchRequest& request, const LaunchPlan& plan) {
  const int least = options.restarts.min_ranks;
  const bool is_automatic = !request.ranks && request.hosts.empty() && !request.slurm;
  if (is_automatic || least <= plan.ranks) return;
  throw Error(ErrorKind::config,
              format("cluster.restarts.min_ranks is {}, but the run has {}", least, counted(plan.ranks, "rank")),
              "start more ranks (--ranks, cluster.ranks), or choose a smaller min_ranks");
}

}  // namespace trainctl
