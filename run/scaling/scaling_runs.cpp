// Starts the runs of verify-scaling, and reads their output.
#include "run/scaling/scaling_runs.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/metrics/count_progress.h"
#include "parallel/launch/config_text.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"
#include "run/failed_child.h"
#include "run/given_config.h"

namespace trainctl {
namespace {

// Reads a line that ScalingWatch::on_pause() printed; ignores other lines.
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

std::string ranks_text(int ranks) { return format("{} {}", ranks, ranks == 1 ? "rank" : "ranks"); }

std::optional<std::int64_t> first_difference(const ScaledRun& a, const ScaledRun& b) {
  for (const auto& [step, hashes] : a.steps) {
    const auto found = b.steps.find(step);
    if (found != b.steps.end() && found->second != hashes) return step;
  }
  return {};
}

ScalingRuns::ScalingRuns(const GivenConfig& given, bool quiet)
    : scratch_(std::filesystem::temp_directory_path()), given_(given), quiet_(quiet) {
  pass_config(given.config, given.files.pack());
}

ScaledRun ScalingRuns::run(int ranks, const ScalingRequest& request) {
  ScaledRun run{ranks, {}, format("{}/run-{}", scratch_.path(), ++count_)};
  std::vector<std::string> command{own_path(), "verify-scaling", given_.config, "--quiet"};
  for (const std::string& set : given_.sets) command.insert(command.end(), {"--set", set});
  command.insert(command.end(), {"--ranks", std::to_string(ranks), "--steps", std::to_string(request.steps),
                                 scaling_directory_option, run.directory});
  if (request.traces) command.emplace_back(scaling_trace_option);
  if (!request.tensor.empty()) command.insert(command.end(), {scaling_values_option, request.tensor});
  std::optional<CountProgress> progress;
  if (!quiet_) {
    const char* what = request.tensor.empty() ? request.traces ? ", traced" : "" : ", with values";
    progress.emplace(format("{}{}: step", ranks_text(ranks), what), static_cast<std::size_t>(request.steps));
  }
  const ChildEnd end = run_child(signals_, command,
                                 [&](std::string_view line) { read_line(line, run, progress ? &*progress : nullptr); });
  if (end.exit_code != 0) throw_failure(format("the run on {}", ranks_text(ranks)), end);
  require(!run.steps.empty(), "a run that succeeded has made steps");
  return run;
}

}  // namespace trainctl
