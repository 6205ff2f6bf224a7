// Composes mpirun's command and surroundings, and concludes how the run ended.
#include "parallel/launch/supervisor.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/comm/environment.h"
#include "parallel/launch/outcome.h"
#include "parallel/launch/scratch.h"
#include "parallel/launch/supervision.h"

namespace trainctl {
namespace {

// A folder in memory for the segments that ranks of one host share.
std::optional<ScratchFolder> shared_memory_scratch(const LaunchPlan& plan) {
  constexpr const char* file_system = "/dev/shm";
  if (!plan.one_host || access(file_system, W_OK | X_OK) != 0) return {};
  return std::optional<ScratchFolder>(std::in_place, file_system);
}

// The user's terminal, where there is one that can redraw a line, as variables for the ranks: its width now, and the
// terminal itself for those on this host, who ask it whenever they draw.
Variables::Map terminal(bool first_rank_here) {
  const char* kind = std::getenv("TERM");
  winsize window{};
  if (kind == nullptr || std::string_view(kind) == "dumb" || isatty(STDERR_FILENO) == 0 ||
      ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0) {
    return {};
  }
  Variables::Map variables = {{std::string(columns_variable), std::to_string(window.ws_col > 0 ? window.ws_col : 80)}};
  std::array<char, 256> name{};
  if (first_rank_here && ttyname_r(STDERR_FILENO, name.data(), name.size()) == 0) {
    variables[std::string(terminal_variable)] = name.data();
  }
  return variables;
}

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

Attended attend(const LaunchPlan& plan, const std::vector<std::string>& command, const Attendance& attendance) {
  if (openmpi_version() != 4) {
    throw Error(
        ErrorKind::config, "this trainctl is not built with OpenMPI 4, whose mpirun it starts its ranks with",
        "build it with OpenMPI 4.1, use --ranks 1, or start the ranks yourself: mpirun -n 2 trainctl run CONFIG");
  }
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty()) {
    throw Error(ErrorKind::config, "there is no mpirun to start the ranks with",
                "install OpenMPI (Debian, Ubuntu: apt-get install openmpi-bin), or use --ranks 1");
  }
  const Signals signals;  // from here on no request is lost
  const char* chosen = std::getenv("TMPDIR");
  const ScratchFolder scratch(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp");
  const std::optional<ScratchFolder> memory = shared_memory_scratch(plan);
  const std::string status_file = scratch.path() + "/status";

  std::vector<std::string> words = plan.mpirun;
  words.front() = mpirun;
  Variables::Map environment = plan.environment;
  environment[std::string(status_file_variable)] = status_file;
  append(words, {"-x", std::string(status_file_variable)});
  const Variables::Map screen = terminal(plan.first_rank_here);
  for (const auto& [name, value] : screen) {
    environment[name] = value;
    append(words, {"-x", name});
  }
  // A bar of rank 0 may stand on the terminal when a line of this process comes.
  if (!screen.empty()) log::set_terminal_hooks([] { std::fputs("\r\x1b[K", stderr); }, {});
  // mpirun's own messages come apart from what the ranks print.
  environment["OPAL_OUTPUT_STDERR_FD"] = std::to_string(messages_descriptor);
  append(words, {"-x", format("OPAL_OUTPUT_STDERR_FD={}", STDERR_FILENO)});
  if (plan.one_host) append(words, {"--mca", "orte_tmpdir_base", scratch.path()});
  if (memory) append(words, {"--mca", "btl_vader_backing_directory", memory->path()});
  words.insert(words.end(), command.begin(), command.end());

  Supervision supervision(signals, start_process(words, environment), status_file, plan.first_rank_here, attendance);
  supervision.wait();
  if (supervision.stopped_at_once()) return {{exit_code(ErrorKind::interrupted), "stopped at once"}, ""};
  RankStatus end = conclude(read_status(status_file), supervision.messages(), supervision.mpirun_code());
  if (const int error = supervision.output_error(); error != 0 && error != EPIPE && end.exit_code == 0) {
    end = {exit_code(ErrorKind::resource),
           "standard output cannot be written: " + std::generic_category().message(error)};
  }
  return {std::move(end), supervision.output()};
}

int supervise(const LaunchPlan& plan, const std::vector<std::string>& command) {
  const RankStatus end = attend(plan, command).end;
  if (!end.message.empty()) log::error(end.message);
  return end.exit_code;
}

}  // namespace trainctl
