// Composes mpirun's command line and environment, and creates the folders for its files.
#include "parallel/launch/supervisor/command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/plan.h"

namespace trainctl {
namespace {

// Returns the folder for temporary files. Throws Error{resource} if it has too little space for mpirun's files.
std::string temporary_folder(const ResourcesNeeded& needed) {
  const char* chosen = std::getenv("TMPDIR");
  std::string folder = chosen != nullptr && *chosen != '\0' ? std::filesystem::absolute(chosen).string() : "/tmp";
  const std::string why = disk_space_problem(folder, needed.temporary);
  if (why.empty()) {
    require_file_size(folder, needed.file_size);
    return folder;
  }
  throw Error(ErrorKind::resource, "no space for mpirun's temporary files: " + why,
              "free some space, or set TMPDIR to another folder");
}

// Creates a folder in memory (`memory`) for the segments that ranks of one host share. Does not create it if the
// segments are stored in the folder for temporary files, `temporary`, or if OpenMPI chooses their folder. Throws
// Error{resource} if neither folder has enough space.
void make_memory_folder(const LaunchPlan& plan, const ResourcesNeeded& needed, const std::string& temporary,
                        std::optional<ScratchFolder>& memory) {
  if (!plan.one_host) return;
  const std::string why = access(shared_memory_folder, W_OK | X_OK) != 0
                              ? format("{} cannot be written", shared_memory_folder)
                              : disk_space_problem(shared_memory_folder, needed.shared_memory);
  if (why.empty()) {
    memory.emplace(shared_memory_folder);
    return;
  }
  const std::string temporary_problem = disk_space_problem(temporary, needed.temporary + needed.shared_memory);
  if (!temporary_problem.empty()) {
    throw Error(
        ErrorKind::resource,
        format("no space for the memory that {} ranks share: {}; {}", plan.ranks, why, temporary_problem),
        "give the container more (docker run --shm-size=1g), set TMPDIR to a folder with space, or start fewer ranks");
  }
  log::warning(format("the ranks share memory through files in {}, which may be slow: {}", temporary, why));
}

// Returns the path of the library that limits mpirun to the addresses of LaunchPlan::listen_on and shields it from stop
// signals. It is next to this program or in its installation; "" if it is missing.
std::string preloaded_library() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(own_path()).parent_path();
  for (const fs::path& file : {folder / "trainctl_listen.so", folder / "../lib/trainctl/trainctl_listen.so"}) {
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file.lexically_normal();
  }
  return "";
}

// Warns if the ranks take long to start; throws if they cannot start (require_ranks_can_start()).
void warn_of_long_start(const RanksNeed& need, std::chrono::milliseconds start_timeout) {
  constexpr double long_start = 30;
  require_ranks_can_start(need, start_timeout);
  if (start_seconds(need) > long_start) log::warning(start_text(need));
}

// Returns variables that describe the user's terminal to the ranks, if the terminal can redraw a line: its current
// width, and its path. Ranks on this host read the width from the terminal whenever they draw.
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

}  // namespace

MpirunCommand::MpirunCommand(const LaunchPlan& plan, const std::vector<std::string>& command,
                             const std::optional<Restart>& restart, const Mpirun& mpirun, const RanksSetting& setting)
    : mpirun_(mpirun), words_(plan.mpirun), environment_(plan.environment) {
  words_.front() = mpirun.find();
  if (words_.front().empty()) {
    throw Error(ErrorKind::config, format("there is no {} to start the ranks with", plan.mpirun.front()),
                format("install {}, or use --ranks 1", mpirun.package()));
  }
  require_working_directory();
  const ResourcesNeeded needed = resources_needed(plan.ranks_here);
  permit_open_files(needed.open_files);
  require_loopback();
  warn_of_long_start({plan.ranks_here, plan.threads, plan.cores_here}, plan.start_timeout);
  const std::string temporary = temporary_folder(needed);
  scratch_.emplace(temporary);
  make_memory_folder(plan, needed, scratch_->path(), memory_);
  status_file_ = scratch_->path() + "/status";
  if (setting.records_flight) make_flight_folder(plan, temporary);

  environment_["TMPDIR"] = temporary;  // PMIx requires an absolute path
  pass(std::string(status_file_variable), status_file_);
  const Variables::Map screen = terminal(plan.first_rank_here);
  shows_bar_ = !screen.empty();
  for (const auto& [name, value] : screen) pass(name, value);
  pass(std::string(launch_variable), setting.launch);
  pass(std::string(restart_variable), restart ? to_text(*restart) : "");
  pass(std::string(output_variable), setting.shows_output && isatty(STDOUT_FILENO) != 0 ? "1" : "0");
  // Separates the launcher's messages from the ranks' output.
  if (const std::string variable = mpirun.messages_variable(); !variable.empty()) {
    environment_[variable] = std::to_string(messages_descriptor);
    append(mpirun.give(variable, std::to_string(STDERR_FILENO)));
  }
  if (has_users(plan)) {
    const std::string hostfile = scratch_->path() + "/hosts";
    std::ofstream(hostfile) << mpirun.hostfile(plan);
    append({"--hostfile", hostfile});
  }
  if (plan.one_host) append(mpirun.keep_files(scratch_->path(), memory_ ? memory_->path() : scratch_->path()));
  preload_launcher(plan);
  append(command);
}

std::vector<std::string> MpirunCommand::folders() const {
  std::vector<std::string> paths;
  for (const std::optional<ScratchFolder>* folder : {&scratch_, &memory_, &flight_}) {
    if (*folder) paths.push_back((*folder)->path());
  }
  return paths;
}

// On several hosts the folder is not within that of the status file, which tells ranks whether their supervisor is on
// the same host (status.h), and ranks on other hosts create it.
void MpirunCommand::make_flight_folder(const LaunchPlan& plan, const std::string& temporary) {
  if (plan.one_host) {
    flight_folder_ = (memory_ ? *memory_ : *scratch_).path() + "/flight";
    std::filesystem::create_directory(flight_folder_);
  } else {
    flight_.emplace(access(shared_memory_folder, W_OK | X_OK) == 0 ? shared_memory_folder : temporary);
    flight_folder_ = flight_->path();
  }
  pass(std::string(flight_variable), flight_folder_);
}

void MpirunCommand::append(const std::vector<std::string>& more) {
  words_.insert(words_.end(), more.begin(), more.end());
}

void MpirunCommand::pass(const std::string& variable, const std::string& value) {
  environment_[variable] = value;
  append(mpirun_.pass(variable));
}

// Shields the launcher, and its daemons on other hosts, from stop signals, and makes them listen on plan.listen_on
// only. Ranks limit their addresses themselves; on one host OpenMPI's ranks do not need the limit.
void MpirunCommand::preload_launcher(const LaunchPlan& plan) {
  const std::string library = preloaded_library();
  if (library.empty() || library.find(' ') != std::string::npos) {
    log::warning(
        "mpirun will listen on all addresses of this host, and end the ranks before they save if SIGTERM reaches "
        "it: trainctl_listen.so was not found next to trainctl");
    return;
  }
  const std::string preload(preload_variable), listen(listen_variable);
  const Variables inherited = Variables::of_process();
  const std::string others = inherited.text(preload);
  environment_[preload] = others.empty() ? library : library + ":" + others;
  environment_[listen] = plan.listen_on;
  append(mpirun_.give(preload, others));
  append(mpirun_.give(listen, plan.ranks_listen_on));
  if (plan.one_host) return;
  append(mpirun_.start_daemons_through(format("env {}={} {}={}", preload, library, listen, plan.listen_on), inherited));
}

}  // namespace trainctl
