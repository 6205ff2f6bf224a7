// Running sbatch, sinfo and scontrol.
#include "parallel/launch/slurm/submit.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/child_run.h"
#include "parallel/launch/process.h"
#include "parallel/launch/scratch.h"

namespace trainctl {
namespace {

// What a program printed; nothing where it failed, with its words in `errors`.
std::optional<std::string> output_of(const Signals& signals, const std::vector<std::string>& command,
                                     std::string* errors = nullptr) {
  std::string text;
  const ChildEnd end =
      run_child(signals, command, [&text](std::string_view line) { text += std::string(line) + "\n"; });
  if (errors != nullptr) *errors = end.errors;
  if (end.exit_code != 0) return {};
  return text;
}

// What the partitions have: "main*: 2 nodes with 64 CPUs, GPUs: gpu:8".
std::string partitions(const Signals& signals) {
  const auto lines =
      output_of(signals, {find_program("sinfo"), "--noheader", "--format=%P: %D nodes with %c CPUs, GPUs: %G"});
  return lines ? *lines : "";
}

// sbatch's words in one line, without its name before each.
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

std::string submit_batch(const Signals& signals, const std::string& script) {
  if (find_program("sbatch").empty()) {
    throw Error(ErrorKind::config, "there is no sbatch here to submit the job with",
                "print the script without --submit, and submit it where SLURM is");
  }
  const ScratchFolder folder(std::filesystem::temp_directory_path().string());
  const std::string file = folder.path() + "/job.sh";
  std::ofstream(file) << script;
  std::string errors;
  const auto said = output_of(signals, {find_program("sbatch"), "--parsable", file}, &errors);
  if (!said) {
    const std::string there = trimmed(partitions(signals));
    throw Error(ErrorKind::config, format("SLURM refuses the job: {}", reason_in(errors)),
                there.empty() ? "" : "ask for what a partition has:\n" + there);
  }
  return trimmed(said->substr(0, said->find(';')));  // "12" or "12;cluster"
}

std::optional<JobState> ask_for_job(const Signals& signals, const std::string& job) {
  const auto line = output_of(signals, {find_program("scontrol"), "--oneliner", "show", "job", job});
  return line ? read_job_state(*line) : std::nullopt;
}

}  // namespace trainctl
