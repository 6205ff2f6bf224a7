// Completes mpirun's command and environment, and derives how the run ended.
#include "parallel/launch/supervisor.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/outcome.h"
#include "parallel/launch/report.h"
#include "parallel/launch/room.h"
#include "parallel/launch/scratch.h"
#include "parallel/launch/supervision.h"

namespace trainctl {
namespace {

// The folder for temporary files. Throws Error{resource} where mpirun's have no room in it.
std::string temporary_folder(const RoomNeeded& needed) {
  const char* chosen = std::getenv("TMPDIR");
  std::string folder = chosen != nullptr && *chosen != '\0' ? std::filesystem::absolute(chosen).string() : "/tmp";
  const std::string why = why_no_room(folder, needed.temporary);
  if (why.empty()) {
    require_file_size(folder, needed.file_size);
    return folder;
  }
  throw Error(ErrorKind::resource, "no room for mpirun's temporary files: " + why,
              "free some space, or set TMPDIR to another folder");
}

// A folder in memory for the segments that ranks of one host share; nothing where they go to the folder for temporary
// files, `temporary`, or are OpenMPI's affair. Throws Error{resource} where neither has room.
std::optional<ScratchFolder> shared_memory_scratch(const LaunchPlan& plan, const RoomNeeded& needed,
                                                   const std::string& temporary) {
  constexpr const char* file_system = "/dev/shm";
  if (!plan.one_host) return {};
  const std::string why = access(file_system, W_OK | X_OK) != 0 ? format("{} cannot be written", file_system)
                                                                : why_no_room(file_system, needed.shared_memory);
  if (why.empty()) return std::optional<ScratchFolder>(std::in_place, file_system);
  const std::string why_not_there = why_no_room(temporary, needed.temporary + needed.shared_memory);
  if (!why_not_there.empty()) {
    throw Error(
        ErrorKind::resource,
        format("no room for the memory that {} ranks share: {}; {}", plan.ranks, why, why_not_there),
        "give the container more (docker run --shm-size=1g), set TMPDIR to a folder with room, or start fewer ranks");
  }
  log::warning(format("the ranks share memory through files in {}, which may be slow: {}", temporary, why));
  return {};
}

// The library that keeps mpirun to the addresses of LaunchPlan::listen_on and shields it from requests to stop, beside
// this program or where it is installed; "" where it is not there.
std::string preloaded_library() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(own_path()).parent_path();
  for (const fs::path& file : {folder / "trainctl_listen.so", folder / "../lib/trainctl/trainctl_listen.so"}) {
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file.lexically_normal();
  }
  return "";
}

// Says that the ranks take long to start; throws where they cannot (require_ranks_can_start()).
void warn_of_long_start(const RanksNeed& need, std::chrono::milliseconds start_timeout) {
  constexpr double long_start = 30;
  require_ranks_can_start(need, start_timeout);
  if (start_seconds(need) > long_start) log::warning(start_text(need));
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

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Shields the launcher, and its daemons on other hosts, from requests to stop, and has them listen on plan.listen_on
// alone. Ranks know how to by themselves, and on one host OpenMPI's have no need.
void preload_launcher(const LaunchPlan& plan, const Mpirun& mpirun, Variables::Map& environment,
                      std::vector<std::string>& words) {
  const std::string library = preloaded_library();
  if (library.empty() || library.find(' ') != std::string::npos) {
    log::warning(
        "mpirun will listen on all addresses of this host, and end the ranks before they save if SIGTERM reaches "
        "it: trainctl_listen.so is not beside trainctl");
    return;
  }
  const std::string preload(preload_variable), listen(listen_variable);
  const Variables inherited = Variables::of_process();
  const std::string others = inherited.text(preload);
  environment[preload] = others.empty() ? library : library + ":" + others;
  environment[listen] = plan.listen_on;
  append(words, mpirun.give(preload, others));
  append(words, mpirun.give(listen, plan.ranks_listen_on));
  if (plan.one_host) return;
  append(words,
         mpirun.start_daemons_through(format("env {}={} {}={}", preload, library, listen, plan.listen_on), inherited));
}

// The rank that a process is; nothing where none is, or those of several hosts have its number.
std::optional<int> rank_of(int process, const std::vector<int>& processes) {
  const auto found = std::find(processes.begin(), processes.end(), process);
  if (found == processes.end() || std::find(found + 1, processes.end(), process) != processes.end()) return {};
  return static_cast<int>(found - processes.begin());
}

// How the run ended, by the status that its ranks have left, else by the launcher's words.
Supervised end_of(const Supervision& supervision, const Mpirun& mpirun, bool one_host, const std::string& status_file) {
  const std::optional<RankStatus> status = read_status(status_file);
  MpirunReport report = mpirun.report(supervision.said().messages() + supervision.said().last_words());
  if (!report.rank && report.process) {  // one that the launcher has ended, it may be; hosts have ends of their own
    report.rank = one_host ? supervision.first_gone() : rank_of(*report.process, marked_processes(status_file));
  }
  RankStatus end = final_status(status, report, supervision.said().messages(), supervision.mpirun_code());
  if (supervision.asked_to_stop() && stopped_unstarted(status, report, supervision.mpirun_code())) {
    end = {exit_code(ErrorKind::stopped), std::string(unstarted_words)};
  }
  if (const int error = supervision.said().output_error(); error != 0 && error != EPIPE && end.exit_code == 0) {
    end = {exit_code(ErrorKind::resource),
           "standard output cannot be written: " + std::generic_category().message(error)};
  }
  return {std::move(end), supervision.said().output()};
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

Supervised run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                          const SupervisionOptions& options) {
  const std::unique_ptr<Mpirun> mpirun = mpirun_of(plan.mpi);
  const std::string program = mpirun->find();
  if (program.empty()) {
    throw Error(ErrorKind::config, format("there is no {} to start the ranks with", plan.mpirun.front()),
                format("install {}, or use --ranks 1", mpirun->package()));
  }
  const Signals signals;  // from here on no request is lost
  require_working_directory();
  const RoomNeeded needed = room_needed(plan.ranks_here);
  permit_open_files(needed.open_files);
  require_loopback();
  warn_of_long_start({plan.ranks_here, plan.threads, plan.cores_here}, plan.start_timeout);
  const std::string temporary = temporary_folder(needed);
  const ScratchFolder scratch(temporary);
  const std::optional<ScratchFolder> memory = shared_memory_scratch(plan, needed, scratch.path());
  const std::string status_file = scratch.path() + "/status";

  std::vector<std::string> words = plan.mpirun;
  words.front() = program;
  Variables::Map environment = plan.environment;
  environment[std::string(status_file_variable)] = status_file;
  environment["TMPDIR"] = temporary;  // absolute: PMIx takes no other
  append(words, mpirun->pass(std::string(status_file_variable)));
  const Variables::Map screen = terminal(plan.first_rank_here);
  for (const auto& [name, value] : screen) {
    environment[name] = value;
    append(words, mpirun->pass(name));
  }
  const bool shown = !options.holds_output && isatty(STDOUT_FILENO) != 0;
  environment[std::string(output_variable)] = shown ? "1" : "0";
  append(words, mpirun->pass(std::string(output_variable)));
  // A bar of rank 0 may stand on the terminal when a line of this process comes.
  if (!screen.empty()) log::set_terminal_hooks([] { std::fputs("\r\x1b[K", stderr); }, {});
  if (const std::string variable = mpirun->messages_variable(); !variable.empty()) {  // they come apart from the ranks'
    environment[variable] = std::to_string(messages_descriptor);
    append(words, mpirun->give(variable, std::to_string(STDERR_FILENO)));
  }
  if (has_users(plan)) {
    const std::string hostfile = scratch.path() + "/hosts";
    std::ofstream(hostfile) << mpirun->hostfile(plan);
    append(words, {"--hostfile", hostfile});
  }
  if (plan.one_host) append(words, mpirun->keep_files(scratch.path(), memory ? memory->path() : scratch.path()));
  preload_launcher(plan, *mpirun, environment, words);
  words.insert(words.end(), command.begin(), command.end());

  Supervision supervision(signals, start_process(words, environment), status_file, plan, *mpirun, options);
  supervision.wait();
  if (supervision.verdict()) {
    supervision.show_held_errors();
    return {*supervision.verdict(), ""};
  }
  const std::optional<RankStatus> status = read_status(status_file);
  const std::string said = supervision.said().messages() + std::string(supervision.said().held_errors());
  const std::optional<RankStatus> shortage =
      status || supervision.mpirun_code() == 0 ? std::nullopt : find_shortage(said);
  // An error of ours explains what MPI said while the ranks started.
  const bool explained = shortage || (status && !status->message.empty() && !supervision.said().held_errors().empty());
  if (explained || (!status && supervision.mpirun_code() != 0)) log::debug("mpirun and the ranks said:\n" + said);
  if (shortage) return {*shortage, ""};
  if (!explained) supervision.show_held_errors();
  return end_of(supervision, *mpirun, plan.one_host, status_file);
}

int supervise(const LaunchPlan& plan, const std::vector<std::string>& command) {
  const RankStatus end = run_supervised(plan, command).end;
  if (!end.message.empty()) log::error(end.message);
  return end.exit_code;
}

}  // namespace trainctl
