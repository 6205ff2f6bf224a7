// The launcher of MPICH: mpiexec, which is Hydra.
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/host/network.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/plan.h"

namespace trainctl {
namespace {

class Mpich final : public Mpirun {
 public:
  // Checks the link target, since `mpiexec` may be OpenMPI's if both are installed.
  std::string find() const override {
    for (const char* name : {"mpiexec.hydra", "mpiexec.mpich", "mpiexec"}) {
      const std::string path = find_program(name);
      std::error_code ignored;
      const std::string real = path.empty() ? "" : std::filesystem::canonical(path, ignored).filename().string();
      if (real.find("hydra") != std::string::npos) return path;
    }
    return "";
  }
  std::string package() const override { return "MPICH (Debian, Ubuntu: apt-get install mpich)"; }

  void compose(LaunchPlan& plan, const LaunchRequest& request) const override;

  // Ranks inherit all variables of mpiexec.
  Words pass(const std::string&) const override { return {}; }
  Words give(const std::string& variable, const std::string& value) const override {
    return {"-genv", variable, value};
  }
  std::string hostfile(const LaunchPlan& plan) const override {
    std::string text;
    for (const Host& host : plan.hosts) {
      const std::string name = without_user(host.name);
      const std::string user = host.name == name ? "" : host.name.substr(0, host.name.find('@'));
      text += format("{}:{}{}\n", name, host.slots, user.empty() ? "" : " user=" + user);
    }
    return text;
  }
  Words keep_files(const std::string&, const std::string&) const override { return {}; }  // MPICH has no named files
  Words start_daemons_through(const std::string&, const Variables&) const override { return {}; }  // they do not listen
  std::string messages_variable() const override { return ""; }

  std::vector<std::string_view> line_beginnings() const override { return {"[mpiexec@", "[proxy:", "Abort("}; }
  std::string take_own_messages(std::string& text) override;
  MpirunReport report(std::string_view messages) const override;

 private:
  std::string take_frame(std::string& text);

  bool in_frame_ = false;
  std::string bar_;  // possible beginning of the frame, the rest of which has not been read yet
};

void Mpich::compose(LaunchPlan& plan, const LaunchRequest& request) const {
  const Variables& variables = request.variables;
  plan.mpirun = {"mpiexec",
                 "-n",
                 std::to_string(plan.ranks),
                 "-bind-to",
                 "none",  // ranks bind themselves (cores.h)
                 "-print-all-exitcodes"};
  if (plan.oversubscribed && !variables.has("MPIR_CVAR_POLLS_BEFORE_YIELD")) {
    plan.environment["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1";
  }
  if (plan.one_host) {  // shared memory only, and ports on loopback only
    plan.mpirun.insert(plan.mpirun.end(), {"-rmk", "user", "-launcher", "fork", "-iface", "lo"});
    if (!variables.has("UCX_TLS")) plan.environment["UCX_TLS"] = "sm,self";
    plan.listen_on = plan.ranks_listen_on = "lo";
    return;
  }
  if (request.tf_config) {
    throw Error(
        ErrorKind::config, "MPICH's mpiexec cannot start ranks through the launch agents of TF_CONFIG",
        "name the hosts (--hosts, cluster.hosts), which are then reached by ssh, or build trainctl with OpenMPI");
  }
  for (const std::string_view secret : {secret_variable, secret_file_variable}) {  // must not be passed to the ranks
    if (variables.has(secret)) plan.environment[std::string(secret)] = "";
  }
  if (!plan.hosts.empty()) plan.mpirun.insert(plan.mpirun.end(), {"-rmk", "user"});
  if (!plan.hosts.empty() && !has_users(plan)) plan.mpirun.insert(plan.mpirun.end(), {"-hosts", host_list(plan)});
  const std::string user_interface = variables.text("HYDRA_IFACE");
  plan.listen_on = plan.ranks_listen_on = user_interface.empty() ? request.network : user_interface;
  const std::string interface = interface_of(request.network);
  if (!interface.empty() && user_interface.empty()) plan.mpirun.insert(plan.mpirun.end(), {"-iface", interface});
}

// Removes MPICH's messages about ranks that end too early from the text, and returns them: a frame at the end of
// standard output, and lines on standard error that begin with the name of an MPICH program or with "Abort(".
std::string Mpich::take_own_messages(std::string& text) {
  std::string said = take_frame(text);
  if (text.find("[mpiexec@") == std::string::npos && text.find("[proxy:") == std::string::npos &&
      text.find("Abort(") == std::string::npos) {
    return said;
  }
  static const std::regex lines("(^|\n)(\\[(mpiexec|proxy:[0-9:]+)@|Abort\\([0-9]+\\) on node )[^\n]*\n");
  for (std::smatch match; std::regex_search(text, match, lines);) {
    said.append(match.str());
    text.replace(static_cast<std::size_t>(match.position()), static_cast<std::size_t>(match.length()), match.str(1));
  }
  return said;
}

// The frame begins with a line of '=', followed by a line with this title.
std::string Mpich::take_frame(std::string& text) {
  constexpr std::string_view title = "=   BAD TERMINATION";
  constexpr std::size_t bar = 60;
  if (in_frame_) return std::exchange(text, "");
  text.insert(0, std::exchange(bar_, ""));
  for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', text.find('\n', at))) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::size_t end = text.find_first_not_of('=', at);
    const bool may_go_on = end == std::string::npos || (text[end] == '\n' && end - at >= bar);
    if (!may_go_on) continue;
    const std::string_view next = end == std::string::npos ? "" : std::string_view(text).substr(end + 1);
    if (next.size() >= title.size() ? !next.starts_with(title) : !title.starts_with(next)) continue;
    std::string rest = text.substr(at);
    text.resize(at);
    in_frame_ = next.size() >= title.size();
    if (in_frame_) return rest;
    bar_ = std::move(rest);
    break;
  }
  return "";
}

// Returns the rank that ended first, and its status, from "Exit codes: [host] 0,1536,9", the statuses on one host.
// Skips ranks that ended because another rank had ended, and ranks that mpiexec or another process killed.
std::optional<std::pair<int, int>> rank_that_ended(const std::string& text) {
  static const std::regex exit_codes(R"(Exit codes: \[\S+\] ([0-9,]+))");
  std::smatch match;
  if (!std::regex_search(text, match, exit_codes)) return {};
  std::istringstream statuses(match[1]);
  std::string word;
  for (int rank = 0; std::getline(statuses, word, ','); ++rank) {
    const int status = word.size() < 9 ? std::atoi(word.c_str()) : 0;  // a status of waitpid()
    const bool ended_by_peer = WIFEXITED(status) && WEXITSTATUS(status) == exit_code(ErrorKind::peer);
    const bool killed = WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
    if (status != 0 && !ended_by_peer && !killed) return std::pair(rank, status);
  }
  return {};
}

void set_status(MpirunReport& report, int status) {
  if (WIFSIGNALED(status)) report.signal = WTERMSIG(status);
  if (WIFEXITED(status)) report.exit_code = WEXITSTATUS(status);
}

MpirunReport Mpich::report(std::string_view messages) const {
  static const std::regex ended(R"(PID (\d+) RUNNING AT (\S+)\s+=\s+EXIT CODE: (\d+))");
  static const std::regex aborted(R"(Abort\((\d+)\) on node \d+ \(rank (\d+) in comm)");
  const std::string text(messages);
  MpirunReport report;
  std::smatch match;
  if (std::regex_search(text, match, aborted)) {
    report.exit_code = std::stoi(match[1]);
    report.rank = std::stoi(match[2]);
  } else if (const auto first = rank_that_ended(text)) {
    report.rank = first->first;
    set_status(report, first->second);
  } else if (std::regex_search(text, match, ended)) {
    report.process = std::stoi(match[1]);
    report.host = match[2];
    set_status(report, std::stoi(match[3]));
  }
  return report;
}

}  // namespace

std::unique_ptr<Mpirun> mpich_mpirun() { return std::make_unique<Mpich>(); }

}  // namespace trainctl
