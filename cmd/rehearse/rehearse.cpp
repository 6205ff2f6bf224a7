// trainctl rehearse: lets standard faults happen to short runs of a config, and shows what was lost.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cmd/common_options.h"
#include "cmd/failed_child.h"
#include "cmd/rehearse/rehearsal.h"
#include "cmd/rehearse/standard_faults.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/ranks/report.h"
#include "run/job/prepared_data.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct RehearseOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::int64_t steps = 20;
  double timeout = 30;
  bool keeps = false;
};

struct Rehearsed {
  RehearsedFault fault;
  RehearsedRun run;
  FaultResult result;
};

// Returns what the config asks for after a loss that is not finite.
std::string on_not_finite(const RunSpec& spec) {
  const Node train = Value<TrainOptions>::write(spec.train);
  const Node* policy = train.find("on_not_finite");
  return policy != nullptr && policy->is_scalar() ? policy->text : "stop";
}

// Returns the plan for the faults, given the undisturbed run.
RehearsalPlan plan_of(const RehearseOptions& options, const RunSpec& spec, const RehearsedRun& undisturbed) {
  if (undisturbed.steps < least_rehearsed_steps) {
    throw Error(ErrorKind::config,
                format("the run has {}, and a rehearsal needs at least {}", counted(undisturbed.steps, "step"),
                       least_rehearsed_steps),
                "let it train longer: --set train.epochs=10");
  }
  const double timeout = spec.cluster.timeout.value;
  return {.ranks = undisturbed.ranks,
          .hosts = undisturbed.hosts,
          .steps = undisturbed.steps,
          .checkpoint_every = rehearsed_interval(undisturbed.steps),
          .on_not_finite = on_not_finite(spec),
          .timeout = timeout > 0 ? std::min(timeout, options.timeout) : options.timeout};
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

Json json_of(const std::vector<Rehearsed>& rehearsed, const RehearsedRun& undisturbed) {
  Json faults = Json::array();
  bool ok = true;
  for (const auto& [fault, run, result] : rehearsed) {
    ok = ok && result.survived;
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
  return {{"ok", ok},
          {"ranks", undisturbed.ranks},
          {"steps", undisturbed.steps},
          {"weights_sha256", undisturbed.weights_sha256},
          {"faults", faults}};
}

int rehearse(RehearseOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  if (find_situation(Variables::of_process()).started_by != StartedBy::user) {
    throw Error(ErrorKind::config, "rehearse starts its ranks itself", "start it without mpirun or srun");
  }
  prepare_data_with_progress(spec.data);
  Rehearsal rehearsal(options.common, options.launch, spec, options.keeps);
  log::info("a run without faults");
  const std::int64_t steps = std::min(options.steps, spec.train.max_steps.value_or(options.steps));
  const RehearsedRun undisturbed =
      rehearsal.run("undisturbed", steps, std::max<std::int64_t>(1, rehearsed_interval(steps)), "[]");
  if (undisturbed.exit_code != 0) {
    throw_failure("the run without faults", {undisturbed.exit_code, undisturbed.errors});
  }
  const RehearsalPlan plan = plan_of(options, spec, undisturbed);
  const std::vector<RehearsedFault> faults = standard_faults(plan);
  std::vector<Rehearsed> rehearsed;
  for (const RehearsedFault& fault : faults) {
    log::info(format("{} of {}: {}", rehearsed.size() + 1, faults.size(), fault.name));
    const std::string name = format("{}-{}", rehearsed.size() + 1, fault.last);
    RehearsedRun run = rehearsal.run(name, plan.steps, plan.checkpoint_every, fault.faults, fault.sets);
    const FaultResult result = judge(fault, run, undisturbed, spec.strategy.reproducible.has_value());
    rehearsed.push_back({fault, std::move(run), result});
  }
  const bool ok =
      std::all_of(rehearsed.begin(), rehearsed.end(), [](const auto& each) { return each.result.survived; });
  if (options.common.json) {
    answer(json_line(json_of(rehearsed, undisturbed)));
  } else {
    const std::string kept = options.keeps ? "the runs are in " + rehearsal.folder() + "\n" : "";
    answer(table_of(rehearsed) + "\n" + verdict_of(rehearsed) + kept);
  }
  return ok ? 0 : exit_code(ErrorKind::answer_is_no);
}

}  // namespace

Subcommand rehearse_subcommand() {
  return {"rehearse", "Lets faults happen to short runs of a config, and shows what was lost and how long it took",
          "trainctl rehearse mnist.yaml --ranks 2", [](CLI::App& app) {
            auto options = std::make_shared<RehearseOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--steps", options->steps, "Steps of each run, at most those of the config; default: 20")
                ->type_name("N")
                ->check(CLI::Range(least_rehearsed_steps, std::int64_t{1} << 40));
            app.add_option("--timeout", options->timeout,
                           "Seconds after which a rank that hangs is given up, if cluster.timeout is longer; default: "
                           "30")
                ->type_name("S")
                ->check(CLI::Range(1.0, 1e6));
            app.add_flag("--keep", options->keeps, "Keeps the runs, in runs/<name>-rehearsal");
            return [options] { return rehearse(*options); };
          }};
}

}  // namespace trainctl
