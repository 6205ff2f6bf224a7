// Starting the runs of verify-scaling and reading what they print.
#include "cmd/scaling/scaling_runs.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/base/format.h"
#include "io/metrics/count_progress.h"
#include "parallel/launch/config_text.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"

namespace trainctl {
namespace {

ErrorKind kind_of(int code) {
  for (const ErrorKind kind : {ErrorKind::config, ErrorKind::data, ErrorKind::diverged, ErrorKind::peer,
                               ErrorKind::resource, ErrorKind::stopped, ErrorKind::interrupted}) {
    if (exit_code(kind) == code) return kind;
  }
  return ErrorKind::internal;
}

std::string trimmed(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  return text.substr(0, end == std::string::npos ? 0 : end + 1);
}

// A line of ScalingWatch::after_step(); other lines are none of ours.
void read_line(std::string_view line, ScaledRun& run, CountProgress* progress) {
  std::istringstream words{std::string(line)};
  std::string word;
  std::int64_t step = 0;
  StepHashes hashes;
  if (!(words >> word >> step >> hashes.weights >> hashes.state) || word != "step") return;
  run.steps[step] = std::move(hashes);
  if (progress != nullptr) progress->next();
}

}  // namespace

std::optional<std::int64_t> first_difference(const ScaledRun& a, const ScaledRun& b) {
  for (const auto& [step, hashes] : a.steps) {
    const auto found = b.steps.find(step);
    if (found != b.steps.end() && found->second != hashes) return step;
  }
  return {};
}

ScalingRuns::ScalingRuns(const CommonOptions& common)
    : scratch_(std::filesystem::temp_directory_path()), common_(common) {
  pass_config(common.config, common.files.pack());
}

ScaledRun ScalingRuns::run(int ranks, const ScalingRequest& request) {
  ScaledRun run{ranks, {}, format("{}/run-{}", scratch_.path(), ++count_)};
  std::vector<std::string> command{own_path(), "verify-scaling", common_.config, "--quiet"};
  for (const std::string& set : common_.sets) command.insert(command.end(), {"--set", set});
  command.insert(command.end(), {"--ranks", std::to_string(ranks), "--steps", std::to_string(request.steps),
                                 scaling_directory_option, run.directory});
  if (request.traces) command.emplace_back(scaling_trace_option);
  if (!request.tensor.empty()) command.insert(command.end(), {scaling_values_option, request.tensor});
  std::optional<CountProgress> progress;
  if (!common_.quiet) {
    const char* what = request.tensor.empty() ? request.traces ? ", traced" : "" : ", with values";
    progress.emplace(format("{} {}{}: step", ranks, ranks == 1 ? "rank" : "ranks", what),
                     static_cast<std::size_t>(request.steps));
  }
  const ChildEnd end = run_child(signals_, command,
                                 [&](std::string_view line) { read_line(line, run, progress ? &*progress : nullptr); });
  if (end.exit_code != 0) {
    const std::string said = trimmed(end.errors);
    throw Error(kind_of(end.exit_code), format("the run on {} {} failed: {}", ranks, ranks == 1 ? "rank" : "ranks",
                                               said.empty() ? format("exit code {}", end.exit_code) : said));
  }
  require(!run.steps.empty(), "a run that ended well has made steps");
  return run;
}

}  // namespace trainctl
