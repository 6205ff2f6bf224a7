// Runs sbatch, sinfo and scontrol, and parses their output.
#include "parallel/launch/slurm/job.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/host/scratch.h"

namespace trainctl {
namespace {

// Returns the value of KEY=VALUE in a text of words separated by spaces, or "".
std::string value_of(std::string_view line, std::string_view key) {
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \n", begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (word.starts_with(key) && word.size() > key.size() && word[key.size()] == '=') {
      return std::string(word.substr(key.size() + 1));
    }
    begin = end + 1;
  }
  return "";
}

// Returns the output of a program. If the program failed, returns an empty value and writes its standard error to
// `errors`.
std::optional<std::string> output_of(const Signals& signals, const std::vector<std::string>& command,
                                     std::string* errors = nullptr) {
  std::string text;
  const ChildEnd end =
      run_child(signals, command, [&text](std::string_view line) { text += std::string(line) + "\n"; });
  if (errors != nullptr) *errors = end.errors;
  if (end.exit_code != 0) return {};
  return text;
}

// Returns the resources of the partitions, such as "main*: 2 nodes with 64 CPUs, GPUs: gpu:8".
std::string partitions(const Signals& signals) {
  const auto lines =
      output_of(signals, {find_program("sinfo"), "--noheader", "--format=%P: %D nodes with %c CPUs, GPUs: %G"});
  return lines ? *lines : "";
}

// Returns sbatch's error messages in one line, without the prefix of each line.
std::string reason_in(const std::string& errors) {
  std::istringstream lines(errors);
  std::string reason;
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view name = "sbatch: error: ";
    if (line.starts_with(name)) line.erase(0, name.size());
    if (!line.empty()) reason += (reason.empty() ? "" : "; ") + line;
  }
  return reason;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

bool JobState::ended() const {
  constexpr std::array<std::string_view, 9> ends = {"COMPLETED", "FAILED",    "TIMEOUT",  "CANCELLED",    "NODE_FAIL",
                                                    "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"};
  return std::find(ends.begin(), ends.end(), name) != ends.end();
}

bool JobState::may_never_start() const {
  return name == "PENDING" &&
         (reason.starts_with("Partition") || reason.starts_with("Invalid") || reason == "BadConstraints");
}

std::optional<JobState> read_job_state(std::string_view line) {
  JobState state;
  state.name = value_of(line, "JobState");
  if (state.name.empty()) return {};
  state.reason = value_of(line, "Reason");
  if (state.reason == "None") state.reason.clear();
  std::sscanf(value_of(line, "ExitCode").c_str(), "%d:%d", &state.exit_code, &state.signal);
  std::sscanf(value_of(line, "Restarts").c_str(), "%d", &state.restarts);
  state.nodes = value_of(line, "NodeList");
  state.batch_node = value_of(line, "BatchHost");
  return state;
}

int exit_code_of(const JobState& state) {
  if (state.name == "COMPLETED") return 0;
  if (state.name == "OUT_OF_MEMORY") return exit_code(ErrorKind::resource);
  if (state.exit_code != 0) return state.exit_code;
  if (state.name == "FAILED" && state.signal != 0) return 128 + state.signal;
  return exit_code(ErrorKind::peer);
}

std::string submit_batch(const Signals& signals, const std::string& script) {
  if (find_program("sbatch").empty()) {
    throw Error(ErrorKind::config, "sbatch, which submits the job, is not installed here",
                "print the script without --submit, and submit it on a host with SLURM");
  }
  const ScratchFolder folder(std::filesystem::temp_directory_path().string());
  const std::string file = folder.path() + "/job.sh";
  std::ofstream(file) << script;
  std::string errors;
  const auto output = output_of(signals, {find_program("sbatch"), "--parsable", file}, &errors);
  if (!output) {
    const std::string there = trimmed(partitions(signals));
    throw Error(ErrorKind::config, format("SLURM refuses the job: {}", reason_in(errors)),
                there.empty() ? "" : "ask for what a partition has:\n" + there);
  }
  return trimmed(output->substr(0, output->find(';')));  // "12" or "12;cluster"
}

std::optional<JobState> ask_for_job(const Signals& signals, const std::string& job) {
  const auto line = output_of(signals, {find_program("scontrol"), "--oneliner", "show", "job", job});
  return line ? read_job_state(*line) : std::nullopt;
}

}  // namespace trainctl
