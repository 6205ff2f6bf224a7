// Writes a batch script.
#include "parallel/launch/slurm/batch_script.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "core/base/terminal_text.h"

namespace trainctl {
namespace {

constexpr int early = 60;  // number of seconds by which SLURM's signal may be early

// The script after the directives. `wait` returns early if a signal is trapped; a second call returns the exit code.
constexpr const char* body = R"(
# Before the time limit SLURM sends SIGUSR1: the run writes a checkpoint and ends with exit code 75, and the job is queued
# again and resumes from there. `scancel --batch --signal=TERM JOB` also ends it with a checkpoint, but for good.
queue_again=yes signalled=
trap 'signalled=yes; kill -USR1 "$run"' USR1
trap 'signalled=yes queue_again=; kill -USR1 "$run"' TERM

{} &
run=$!
until signalled=; wait "$run"; code=$?; [ -z "$signalled" ]; do :; done

if [ "$code" -eq 75 ] && [ "$queue_again" ]; then
  scontrol requeue "$SLURM_JOB_ID" || echo "the job could not be queued again: submit it once more to resume" >&2
fi
exit "$code"
)";

// Returns an option of sbatch. Throws Error{config} if the option would not end at the end of its line.
std::string directive(const std::string& option) {
  if (one_line(option) == option) return option;
  throw Error(ErrorKind::config,
              format("'{}' has a line break or another control character, but sbatch accepts one line for each option",
                     terminal_word(option)),
              "leave these characters out, and rename folders that have them in their names");
}

// Returns the numbers of a text that are separated by colons; empty if a part is not a number.
std::optional<std::vector<int>> numbers_in(std::string_view text) {
  std::vector<int> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    int number = 0;
    const auto [rest, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (part.empty() || problem != std::errc() || rest != part.data() + part.size() || number < 0 || number > 1'000'000)
      return {};
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

SignalLead lead_from(double step_seconds, double save_seconds, const std::string& run_directory) {
  constexpr double minimum = 60, extra = 30, maximum = 86400;
  const double needed = std::min(extra + 2 * step_seconds + 3 * save_seconds, maximum);
  return {10 * static_cast<int>(std::ceil(std::max(needed, minimum) / 10)),
          format("in {} a step takes {} and a checkpoint {}", run_directory, seconds_text(step_seconds),
                 seconds_text(save_seconds))};
}

std::optional<int> slurm_seconds(std::string_view time) {
  const std::size_t dash = time.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? numbers_in(time.substr(0, dash)) : std::vector<int>{0};
  auto parts = numbers_in(has_days ? time.substr(dash + 1) : time);
  if (!days || !parts || days->size() != 1 || parts->size() > 3) return {};
  if (!has_days && parts->size() < 3) parts->insert(parts->begin(), 0);  // minutes come first
  parts->resize(3);
  const double seconds = 86400.0 * days->front() + 3600.0 * (*parts)[0] + 60.0 * (*parts)[1] + (*parts)[2];
  if (seconds < 1 || seconds > 1e9) return {};
  return static_cast<int>(seconds);
}

bool is_task_list(std::string_view tasks) {
  const std::size_t limit = tasks.find('%');
  if (limit != std::string_view::npos) {
    const auto at_once = numbers_in(tasks.substr(limit + 1));
    if (!at_once || at_once->size() != 1 || at_once->front() < 1) return false;
    tasks = tasks.substr(0, limit);
  }
  for (std::size_t begin = 0; begin <= tasks.size();) {
    const std::size_t end = std::min(tasks.find(',', begin), tasks.size());
    const std::string_view part = tasks.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const bool is_range = dash != std::string_view::npos;
    const auto first = numbers_in(part.substr(0, is_range ? dash : part.size()));
    const auto last = is_range ? numbers_in(part.substr(dash + 1)) : first;  // with the step after a colon
    if (!first || !last || first->size() != 1 || last->size() > (is_range ? 2u : 1u)) return false;
    if (last->front() < first->front() || last->back() < (last->size() > 1 ? 1 : 0)) return false;
    begin = end + 1;
  }
  return true;
}

std::string own_option_for(const std::string& sbatch) {
  const std::string name = sbatch.substr(0, sbatch.find('='));
  const bool is_name = !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
  if (!is_name) {
    throw Error(ErrorKind::config, format("--sbatch '{}' is no option of sbatch", terminal_word(sbatch)),
                "write a long option without its dashes, such as partition=gpu or exclusive");
  }
  constexpr std::pair<std::string_view, std::string_view> own[] = {{"array", "--array"},
                                                                   {"nodes", "--nodes"},
                                                                   {"ntasks", "--ranks"},
                                                                   {"ntasks-per-node", "--ranks and --nodes"},
                                                                   {"time", "--time"},
                                                                   {"gpus-per-node", "--gpus-per-node"},
                                                                   {"cpus-per-task", "--cpus-per-task"}};
  for (const auto& [option, replacement] : own) {
    if (name == option) return std::string(replacement);
  }
  for (const std::string_view fixed : {"job-name", "chdir", "output", "open-mode", "signal", "requeue", "no-requeue"}) {
    if (name != fixed) continue;
    throw Error(ErrorKind::config,
                format("--sbatch {}: trainctl sets {} itself, so that the job resumes and its log is "
                       "found",
                       terminal_word(sbatch), name),
                name == "job-name" ? "set `name` in the config instead" : "leave it out");
  }
  return "";
}

std::string log_pattern(const BatchJob& job) { return job.name + (job.array.empty() ? "-%j.log" : "-%A_%a.log"); }

std::string log_path(const BatchJob& job, const std::string& number) {
  std::string name = log_pattern(job);
  for (const char* placeholder : {"%j", "%A"}) {
    if (const std::size_t at = name.find(placeholder); at != std::string::npos) name.replace(at, 2, number);
  }
  return (std::filesystem::path(job.directory) / name).string();
}

std::string batch_script(const BatchJob& job) {
  const int lead = job.lead.seconds;
  if (const auto time = slurm_seconds(job.time); time && *time <= lead + early) {
    throw Error(
        ErrorKind::config,
        format("--time {} is too short: the signal to save is sent {} s before the end ({}), and SLURM may send "
               "it {} s earlier",
               job.time, lead, job.lead.reason, early),
        format("ask for more than {} s", lead + early));
  }
  std::string text = "#!/bin/bash\n# " + one_line(shell_line(job.written_by)) + "\n";
  const auto add = [&text](const std::string& option) { text += "#SBATCH --" + directive(option) + "\n"; };
  add("job-name=" + shell_word(job.name));
  add("chdir=" + shell_word(job.directory));
  add("output=" + shell_word(log_pattern(job)));
  add("open-mode=append");
  add(format("nodes={}", job.nodes));
  add(format("ntasks={}", job.ranks));
  if (job.ranks % job.nodes == 0) add(format("ntasks-per-node={}", job.ranks / job.nodes));
  if (job.gpus_per_node > 0) add(format("gpus-per-node={}", job.gpus_per_node));
  if (job.cpus_per_task) add(format("cpus-per-task={}", *job.cpus_per_task));
  if (!job.time.empty()) add("time=" + job.time);
  if (!job.array.empty()) add("array=" + job.array);
  text += format("# This signal leaves time for the last checkpoint ({}).\n", one_line(job.lead.reason));
  add(format("signal=B:USR1@{}", lead));
  add("requeue");
  if (job.survives_nodes) add("no-kill");
  for (const std::string& option : job.sbatch) add(option);
  return text + format(body, shell_line(job.command));
}

}  // namespace trainctl
