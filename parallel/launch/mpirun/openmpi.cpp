// The launcher of OpenMPI: mpirun. The runtime of version 4 is ORTE. The runtime of version 5 is PRRTE with PMIx, which
// has other settings and other names for the same settings.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "parallel/launch/agent/chief.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/plan.h"

namespace trainctl {
namespace {

// The names of the same settings in the two versions.
struct OpenMpiNames {
  const char* runtime_option;  // option that sets a parameter of the runtime
  const char* runtime_prefix;  // prefix of the environment variable of such a parameter
  const char* runtime_networks;
  const char* shared_memory;  // the transport through shared memory
  const char* temporary_folder;
  const char* remote_shell;  // the component that starts daemons by a remote shell
  const char* launch_agent;
  const char* daemon;
  const char* stay_attached;
  const char* whole_names;  // parameter that keeps the domains of host names
};

constexpr OpenMpiNames names_of_4 = {"--mca",
                                     "OMPI_MCA_",
                                     "oob_tcp_if_include",
                                     "vader",
                                     "orte_tmpdir_base",
                                     "rsh",
                                     "orte_launch_agent",
                                     "orted",
                                     "orte_leave_session_attached",
                                     "orte_keep_fqdn_hostnames"};
constexpr OpenMpiNames names_of_5 = {"--prtemca",
                                     "PRTE_MCA_",
                                     "prte_if_include",
                                     "sm",
                                     "prte_tmpdir_base",
                                     "ssh",
                                     "prte_launch_agent",
                                     "prted",
                                     "prte_leave_session_attached",
                                     "prte_keep_fqdn_hostnames"};

// Returns the variables of this process that ranks on other hosts do not have: trainctl's settings, threads, library
// paths, and the variables that the config names.
std::vector<std::string> forwarded_variables(const LaunchRequest& request) {
  std::set<std::string> names = {"OMP_NUM_THREADS", "LD_LIBRARY_PATH"};
  for (const auto& [name, value] : request.variables.all()) {
    const bool secret = name == secret_variable || name == secret_file_variable;  // not for the ranks
    if ((name.starts_with("TRAINCTL_") && !secret) || name.starts_with("NCCL_")) names.insert(name);
  }
  names.insert(request.forwarded.begin(), request.forwarded.end());
  std::vector<std::string> present;
  for (const std::string& name : names) {
    if (request.variables.has(name)) present.push_back(name);
  }
  return present;
}

class OpenMpi final : public Mpirun {
 public:
  explicit OpenMpi(int version) : version_(version), names_(version == 4 ? names_of_4 : names_of_5) {}

  // Checks the link target, since `mpirun` may be MPICH's if both are installed.
  std::string find() const override {
    const std::string common = find_program("mpirun");
    std::error_code ignored;
    const std::string real = common.empty() ? "" : std::filesystem::canonical(common, ignored).filename().string();
    if (real.find("hydra") == std::string::npos) return common;
    return find_program("mpirun.openmpi");
  }
  std::string package() const override { return "OpenMPI (Debian, Ubuntu: apt-get install openmpi-bin)"; }

  void compose(LaunchPlan& plan, const LaunchRequest& request) const override;

  Words pass(const std::string& variable) const override { return {"-x", variable}; }
  Words give(const std::string& variable, const std::string& value) const override {
    return {"-x", format("{}={}", variable, value)};
  }
  std::string hostfile(const LaunchPlan& plan) const override {
    std::string text;
    for (const Host& host : plan.hosts) text += format("{} slots={}\n", host.name, host.slots);
    return text;
  }
  Words keep_files(const std::string& temporary, const std::string& shared_memory) const override {
    return {names_.runtime_option,
            names_.temporary_folder,
            temporary,
            "--mca",
            format("btl_{}_backing_directory", names_.shared_memory),
            shared_memory};
  }
  Words start_daemons_through(const std::string& command, const Variables& variables) const override {
    if (variables.has(std::string(names_.runtime_prefix) + names_.launch_agent)) return {};
    return {names_.runtime_option, names_.launch_agent, format("{} {}", command, names_.daemon)};
  }
  std::string messages_variable() const override {
    return version_ == 4 ? "OPAL_OUTPUT_STDERR_FD" : "";  // 5 ignores its PMIX_OUTPUT_STDERR_FD
  }

  std::string take_own_messages(std::string& text) override;
  MpirunReport report(std::string_view messages) const override;

 private:
  // Sets a parameter, unless the user has set it in the environment.
  void set(LaunchPlan& plan, const Variables& variables, const char* option, const std::string& prefix,
           const std::string& name, const std::string& value) const {
    if (variables.has(prefix + name)) return;
    plan.mpirun.insert(plan.mpirun.end(), {option, name, value});
  }
  void set_mpi(LaunchPlan& plan, const Variables& variables, const std::string& name, const std::string& value) const {
    set(plan, variables, "--mca", "OMPI_MCA_", name, value);
  }
  void set_runtime(LaunchPlan& plan, const Variables& variables, const std::string& name,
                   const std::string& value) const {
    set(plan, variables, names_.runtime_option, names_.runtime_prefix, name, value);
  }
  std::string confine(LaunchPlan& plan, const LaunchRequest& request, bool runtime) const;
  void stay_on_this_host(LaunchPlan& plan, const LaunchRequest& request) const;
  void reach_other_hosts(LaunchPlan& plan, const LaunchRequest& request) const;

  int version_;
  OpenMpiNames names_;
};

// Limits the networks on which the runtime or MPI communicates and listens to the networks that the user has set,
// otherwise to the network that connects the hosts. Returns these networks; "" if they are unknown.
std::string OpenMpi::confine(LaunchPlan& plan, const LaunchRequest& request, bool runtime) const {
  const Variables& variables = request.variables;
  const std::string include = runtime ? names_.runtime_networks : "btl_tcp_if_include";
  const std::string prefix = runtime ? names_.runtime_prefix : "OMPI_MCA_";
  const std::string exclude = std::regex_replace(include, std::regex("include$"), "exclude");
  const std::string user_networks = variables.text(prefix + include);
  if (!user_networks.empty() || variables.has(prefix + exclude)) return user_networks;
  const auto set_networks = [&](const std::string& name, const std::string& networks) {
    if (runtime) {
      set_runtime(plan, variables, name, networks);
    } else {
      set_mpi(plan, variables, name, networks);
    }
  };
  if (!request.network.empty()) {
    set_networks(include, request.network);
  } else if (!request.useless_networks.empty()) {
    std::string networks = "127.0.0.0/8";
    for (const std::string& network : request.useless_networks) networks += "," + network;
    set_networks(exclude, networks);
  }
  return request.network;
}

// Uses shared memory only, and listens on loopback only (for OpenMPI with the help of preload/listen.cpp). Without the
// search for network cards MPI_Init is three times faster.
void OpenMpi::stay_on_this_host(LaunchPlan& plan, const LaunchRequest& request) const {
  const Variables& variables = request.variables;
  set_mpi(plan, variables, "pml", "ob1");
  set_mpi(plan, variables, "btl", format("{},self", names_.shared_memory));
  plan.listen_on = "lo";
  if (version_ == 4) {
    set_runtime(plan, variables, names_.runtime_networks, plan.listen_on);
    set_runtime(plan, variables, "plm", "isolated");
  }
  // SLURM's name of this host may differ from the host name.
  if (request.slurm) set_runtime(plan, variables, "ras", "^slurm");
}

void OpenMpi::reach_other_hosts(LaunchPlan& plan, const LaunchRequest& request) const {
  const Variables& variables = request.variables;
  plan.listen_on = confine(plan, request, true);
  plan.ranks_listen_on = confine(plan, request, false);
  for (const std::string& name : forwarded_variables(request)) plan.mpirun.insert(plan.mpirun.end(), {"-x", name});
  for (const auto& [name, value] : plan.environment) plan.mpirun.insert(plan.mpirun.end(), {"-x", name});
  // By default OpenMPI shortens "node1.example.org" to "node1", which resolvers may not know.
  const auto has_domain = [](const Host& host) {
    const bool is_address = host.name.find_first_not_of("0123456789.") == std::string::npos;
    return !is_address && host.name.find('.') != std::string::npos;
  };
  if (std::any_of(plan.hosts.begin(), plan.hosts.end(), has_domain)) {
    set_runtime(plan, variables, names_.whole_names, "1");
  }
  if (!request.tf_config) return;
  // The launch agents replace ssh. A daemon must stay in its session, so that it remains a child of the agent.
  const std::string shell = names_.remote_shell;
  set_runtime(plan, variables, "plm", shell);
  set_runtime(plan, variables, format("plm_{}_agent", shell), format("{} {} --", own_path(), remote_shell_command));
  // Daemons must not start further daemons, since only the chief knows the agents' secret.
  set_runtime(plan, variables, format("plm_{}_no_tree_spawn", shell), "1");
  set_runtime(plan, variables, names_.stay_attached, "1");
}

void OpenMpi::compose(LaunchPlan& plan, const LaunchRequest& request) const {
  const Variables& variables = request.variables;
  plan.mpirun = {"mpirun", "-n", std::to_string(plan.ranks)};
  if (plan.one_host || (!plan.hosts.empty() && !has_users(plan)))
    plan.mpirun.insert(plan.mpirun.end(), {"-H", host_list(plan)});
  // Ranks bind themselves (cores.h), since each host has other cores, and tell MPI that they are bound.
  plan.mpirun.insert(plan.mpirun.end(), {"--bind-to", "none", "-x", format("{}=1", bound_variable)});
  if (plan.oversubscribed) {
    if (version_ == 4) {
      plan.mpirun.push_back("--oversubscribe");
    } else {
      plan.mpirun.insert(plan.mpirun.end(), {"--map-by", ":oversubscribe"});
    }
    set_mpi(plan, variables, "mpi_yield_when_idle", "1");
  }
  // mpirun must start ranks from its main thread, since a rank ends with the thread that has started it (run_rank.h).
  set_runtime(plan, variables, "odls_base_num_threads", "0");
  // Without this setting, each failure takes two seconds longer; killed ranks have no work left.
  if (version_ == 4) set_runtime(plan, variables, "odls_base_sigkill_timeout", "0");
  // Connections between ranks and their daemon use loopback.
  if (version_ == 5) set(plan, variables, "--pmixmca", "PMIX_MCA_", "ptl_tcp_if_include", "lo");
  if (plan.one_host) {
    stay_on_this_host(plan, request);
  } else {
    reach_other_hosts(plan, request);
  }
  if (request.root) {
    plan.environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    plan.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
}

// Returns the positions of lines of at least 50 dashes; OpenMPI prints its messages between two such lines.
std::vector<std::size_t> bars_in(const std::string& text) {
  constexpr std::string_view bar = "--------------------------------------------------";
  std::vector<std::size_t> bars;
  for (std::size_t at = text.find(bar); at != std::string::npos; at = text.find(bar, at)) {
    const std::size_t end = text.find_first_not_of('-', at);
    if ((at == 0 || text[at - 1] == '\n') && end != std::string::npos && text[end] == '\n') bars.push_back(at);
    at = end;
    if (end == std::string::npos) break;
  }
  return bars;
}

// On standard output mpirun counts the processes that it killed, and its daemons name the hosts that they cannot reach;
// version 5 prints everything on standard error. Its message about each forwarded signal is dropped, since it does not
// show how the run ended.
std::string OpenMpi::take_own_messages(std::string& text) {
  std::string own_messages;
  const auto take = [&](std::size_t begin, std::size_t end) {
    own_messages.append(text, begin, end - begin);
    text.erase(begin, end - begin);
  };
  const std::vector<std::size_t> bars = bars_in(text);
  // Backwards, so that earlier positions stay valid.
  for (std::size_t last = bars.size() / 2 * 2; last >= 2; last -= 2) {
    const std::size_t begin = bars[last - 2], end = text.find('\n', bars[last - 1]) + 1;
    const bool unreached = text.find("unable to complete a TCP connection", begin) < end;
    if (version_ == 5 || unreached) take(begin, end);
  }
  if (text.find(" total process") != std::string::npos) {
    static const std::regex counts("(^|\n)([0-9]+ total process(es)? (aborted|failed to start|killed [^\n]*)\n)");
    for (std::smatch match; std::regex_search(text, match, counts);) {
      const auto begin = static_cast<std::size_t>(match.position(2));
      take(begin, begin + static_cast<std::size_t>(match.length(2)));
    }
  }
  for (const std::string_view chatter :
       {"mpirun: Forwarding signal 10 to job\n", "PRTE: Forwarding signal 10 to job\n",
        "mpirun: Forwarding signal 18 to job\n", "PRTE: Forwarding signal 18 to job\n"}) {
    if (const std::size_t at = text.find(chatter); at != std::string::npos) text.erase(at, chatter.size());
  }
  return own_messages;
}

MpirunReport OpenMpi::report(std::string_view messages) const {
  static const std::regex killed(R"(process rank (\d+) with PID \d+ on node (\S+)\s+exited\s+on\s+signal (\d+))");
  static const std::regex ended(R"(Process name: \[[^\n]*,(\d+)\]\s+Exit code:\s+(\d+))");
  static const std::regex aborted(
      R"(MPI_ABORT was invoked on rank (\d+) in communicator[^\n]*\s+(?:with errorcode|Proc:[^\n]*\s+Errorcode:) (\d+))");
  static const std::regex lost(R"(Remote daemon: \[[^\n]*\] on node (\S+))");
  static const std::regex refused(
      R"(TCP connection\s+to another process:\s+Local host:\s+(\S+)\s+Remote host:\s+(\S+))");
  static const std::regex refused_rank(R"(from (\S+) to: (\S+) Unable to connect to the peer)");
  const std::string text(messages);
  MpirunReport report;
  report.host_unreachable = text.find("unable to reliably start one or more daemons") != std::string::npos;
  std::smatch match;
  if (std::regex_search(text, match, aborted) || std::regex_search(text, match, ended)) {
    report.rank = std::stoi(match[1]);
    report.exit_code = std::stoi(match[2]);
  } else if (std::regex_search(text, match, lost)) {
    report.host = match[1];
    report.host_lost = true;
  } else if (std::regex_search(text, match, killed)) {
    report.rank = std::stoi(match[1]);
    report.host = match[2];
    report.signal = std::stoi(match[3]);
  } else if (std::regex_search(text, match, refused) || std::regex_search(text, match, refused_rank)) {
    report.host = match[1];
    report.not_reached = match[2];
  }
  return report;
}

}  // namespace

std::unique_ptr<Mpirun> openmpi_mpirun(int version) { return std::make_unique<OpenMpi>(version); }

}  // namespace trainctl
