// Plans the runs of a rehearsal, starts them one after the other, and shows what each fault has done.
#include "run/rehearsal/rehearse.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/launch/host/child_run.h"
#include "run/failed_child.h"
#include "run/job/prepared_data.h"
#include "run/rehearsal/rehearsal.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Returns what the config asks for after a loss that is not finite.
std::string on_not_finite(const RunSpec& spec) {
  const Node train = Value<TrainOptions>::write(spec.train);
  const Node* policy = train.find("on_not_finite");
  return policy != nullptr && policy->is_scalar() ? policy->text : "stop";
}

// Returns the plan for the faults, given the undisturbed run.
RehearsalPlan plan_of(const RehearsalRequest& request, const RunSpec& spec, const RehearsedRun& undisturbed) {
  if (undisturbed.steps < least_rehearsed_steps) {
    const bool by_steps = spec.train.max_steps && *spec.train.max_steps < least_rehearsed_steps;
    throw Error(ErrorKind::config,
                format("the run has {}, and a rehearsal needs at least {}", counted(undisturbed.steps, "step"),
                       least_rehearsed_steps),
                format("let it train longer: --set train.{}", by_steps ? "max_steps=20" : "epochs=10"));
  }
  const double timeout = spec.cluster.timeout.value;
  return {.ranks = undisturbed.ranks,
          .hosts = undisturbed.hosts,
          .steps = undisturbed.steps,
          .checkpoint_every = rehearsed_interval(undisturbed.steps),
          .on_not_finite = on_not_finite(spec),
          .timeout = timeout > 0 ? std::min(timeout, request.timeout) : request.timeout};
}

std::string weights_text(const FaultResult& result, const RehearsedFault& fault) {
  if (result.equal) return "equal";
  if (fault.survival == Survival::diverges) return "";
  return result.loss_change ? format("differ, loss {:+.2g} %", 100 * *result.loss_change) : "";
}

std::string table_of(const std::vector<Rehearsed>& rehearsed) {
  constexpr auto right = TextTable::Align::right;
  TextTable table(
      {{"fault"}, {"outcome"}, {"steps lost", right}, {"detected", right}, {"first new step", right}, {"weights"}});
  const auto after = [](const std::optional<double>& seconds) {
    return seconds ? "after " + seconds_text(*seconds) : std::string();
  };
  for (const Rehearsed& each : rehearsed) {
    const FaultResult& result = each.result;
    table.add({each.fault.name, result.outcome, result.lost_steps ? grouped(*result.lost_steps) : "0",
               after(result.detect_seconds), after(result.recover_seconds), weights_text(result, each.fault)});
  }
  return table.text();
}

// Names the faults that were not survived, with the last line of each run's errors.
std::string verdict_of(const std::vector<Rehearsed>& rehearsed) {
  std::string text;
  for (const Rehearsed& each : rehearsed) {
    if (each.result.survived) continue;
    std::string errors = each.run.errors;
    while (!errors.empty() && errors.back() == '\n') errors.pop_back();
    const std::size_t line = errors.rfind('\n');
    text += format("not survived: {}{}\n", each.fault.name,
                   errors.empty() ? "" : ": " + errors.substr(line == std::string::npos ? 0 : line + 1));
  }
  return text.empty() ? format("the run survives {}\n", counted(std::ssize(rehearsed), "fault")) : text;
}

Json known(const std::optional<double>& value) { return value ? json_number(*value) : Json(); }

}  // namespace

bool RehearsalResult::survived() const {
  return std::all_of(faults.begin(), faults.end(), [](const auto& each) { return each.result.survived; });
}

RehearsalResult rehearse(const GivenConfig& given, const LaunchFlags& launch, const RunSpec& spec,
                         const RehearsalRequest& request) {
  prepare_data_with_progress(spec.data);
  Rehearsal rehearsal(given, launch, spec, request.keeps);
  log::info("a run without faults");
  const std::int64_t steps = std::min(request.steps, spec.train.max_steps.value_or(request.steps));
  RehearsalResult rehearsed;
  rehearsed.undisturbed =
      rehearsal.run("undisturbed", steps, std::max<std::int64_t>(1, rehearsed_interval(steps)), "[]");
  const RehearsedRun& undisturbed = rehearsed.undisturbed;
  if (undisturbed.exit_code != 0) {
    throw_failure("the run without faults", {undisturbed.exit_code, undisturbed.errors});
  }
  const RehearsalPlan plan = plan_of(request, spec, undisturbed);
  const std::vector<RehearsedFault> faults = standard_faults(plan);
  for (const RehearsedFault& fault : faults) {
    const std::size_t number = rehearsed.faults.size() + 1;
    log::info(format("{} of {}: {}", number, faults.size(), fault.name));
    const std::string name = format("{}-{}", number, fault.last);
    RehearsedRun run = rehearsal.run(name, plan.steps, plan.checkpoint_every, fault.faults, fault.sets);
    const FaultResult result = judge(fault, run, undisturbed, spec.strategy.reproducible.has_value());
    rehearsed.faults.push_back({fault, std::move(run), result});
  }
  if (request.keeps) rehearsed.kept = rehearsal.folder();
  return rehearsed;
}

std::string to_text(const RehearsalResult& rehearsed) {
  const std::string kept = rehearsed.kept.empty() ? "" : "the runs are in " + rehearsed.kept + "\n";
  return table_of(rehearsed.faults) + "\n" + verdict_of(rehearsed.faults) + kept;
}

Json to_json(const RehearsalResult& rehearsed) {
  Json faults = Json::array();
  for (const auto& [fault, run, result] : rehearsed.faults) {
    faults.push_back({{"fault", fault.name},
                      {"outcome", result.outcome},
                      {"survived", result.survived},
                      {"exit_code", run.exit_code},
                      {"lost_steps", result.lost_steps.value_or(0)},
                      {"detect_seconds", known(result.detect_seconds)},
                      {"recover_seconds", known(result.recover_seconds)},
                      {"weights_equal", result.equal},
                      {"loss_change", known(result.loss_change)}});
  }
  return {{"ok", rehearsed.survived()},
          {"ranks", rehearsed.undisturbed.ranks},
          {"steps", rehearsed.undisturbed.steps},
          {"weights_sha256", rehearsed.undisturbed.weights_sha256},
          {"faults", faults}};
}

}  // namespace trainctl
