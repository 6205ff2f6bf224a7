// Reads the metrics and marks of a rehearsed run, and compares it with the undisturbed run.
#include "run/rehearsal/rehearsed_run.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "run/rehearsal/standard_faults.h"

namespace trainctl {
namespace {

constexpr std::int64_t any_size = std::numeric_limits<std::int64_t>::max();

// The note that a fault leaves when it happens (parallel/health/faults).
struct Mark {
  std::int64_t step = 0;
  double time = 0;
};

std::optional<Mark> read_mark(const RehearsedRun& run, const RehearsedFault& fault) {
  const std::string path = format("{}/faults/{}-{}", run.directory, fault.mark, fault.last);
  if (!exists(path)) return {};
  const Json json = try_parse_json(read_file(path, any_size));
  if (!json.is_object()) return {};
  return Mark{json.value("step", std::int64_t{0}), json.value("time", 0.0)};
}

void add_event(const Json& json, RehearsedRun& run) {
  const std::string event = json.value("event", "");
  if (event == "start") {
    run.ranks = json.value("ranks", 0);
    run.hosts = json.value("hosts", std::vector<std::string>());
    run.starts.push_back({.first_step = json.value("first_step", std::int64_t{0})});
  } else if (event == "restart" && !run.starts.empty()) {
    run.starts.back().cause = json.value("cause", "");
    run.starts.back().detected = json.value("detected", 0.0);
  } else if (event == "step" && !run.starts.empty()) {
    std::optional<double>& first = run.starts.back().first_step_time;
    if (!first) first = json.value("time", 0.0);
    run.loss = number_of(json.at("loss"));
  } else if (event == "end") {
    run.steps = json.value("step", std::int64_t{0});
    run.weights_sha256 = json.value("weights_sha256", "");
  }
}

// A cause such as "rank_killed" as words.
std::string words_of(std::string cause) {
  std::replace(cause.begin(), cause.end(), '_', ' ');
  return cause;
}

std::string outcome_of(const FaultResult& result, const RehearsedRun& run, Survival survival) {
  if (!result.happened) return "did not happen";
  if (run.exit_code != 0) {
    const bool as_asked = survival == Survival::diverges && run.exit_code == exit_code(ErrorKind::diverged);
    return format("the run ended with exit code {}{}", run.exit_code, as_asked ? ", as the config asks" : "");
  }
  // A run without a checkpoint starts anew, with new metrics.
  if (run.starts.empty() || run.starts.back().cause.empty()) return "the run went on";
  return format("{}, started again", words_of(run.starts.back().cause));
}

}  // namespace

RehearsedRun read_rehearsed_run(const std::string& directory, int exit_code, std::string errors) {
  RehearsedRun run;
  run.exit_code = exit_code;
  run.errors = std::move(errors);
  run.directory = directory;
  const std::string path = directory + "/metrics.jsonl";
  if (!exists(path)) return run;
  std::istringstream lines(read_file(path, any_size));
  for (std::string line; std::getline(lines, line);) {
    const Json json = try_parse_json(line);
    if (json.is_object()) add_event(json, run);
  }
  return run;
}

FaultResult judge(const RehearsedFault& fault, const RehearsedRun& run, const RehearsedRun& undisturbed,
                  bool reproducible) {
  FaultResult result;
  const std::optional<Mark> mark = read_mark(run, fault);
  result.happened = mark.has_value();
  result.equal = !run.weights_sha256.empty() && run.weights_sha256 == undisturbed.weights_sha256;
  const bool has_losses = !run.weights_sha256.empty() && run.loss && undisturbed.loss;
  if (has_losses && *undisturbed.loss != 0) result.loss_change = *run.loss / *undisturbed.loss - 1;
  for (const RehearsedRun::Start& start : run.starts) {
    if (!mark || start.detected < mark->time) continue;
    result.lost_steps = std::max<std::int64_t>(0, mark->step - start.first_step);
    result.detect_seconds = start.detected - mark->time;
    if (start.first_step_time) result.recover_seconds = *start.first_step_time - mark->time;
    break;
  }
  result.outcome = outcome_of(result, run, fault.survival);
  const int wanted = fault.survival == Survival::diverges ? exit_code(ErrorKind::diverged) : 0;
  const bool same = result.equal || !reproducible || fault.survival != Survival::same_weights;
  result.survived = result.happened && run.exit_code == wanted && same;
  return result;
}

}  // namespace trainctl
