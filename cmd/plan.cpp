// trainctl plan: predicts the memory of a run, the time of each part of its step, and alternatives, on ranks that need
// not exist. Starts ranks only to measure this machine.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/spec/units.h"
#include "parallel/launch/ranks/report.h"
#include "run/job/phases.h"
#include "run/planning/make_plan.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct PlanCommand {
  CommonOptions common;
  PlanOptions plan;
  int phase = 0;  // counted from 1; 0: the last one
};

int run_plan(PlanCommand& options) {
  require_not_input("--timeline", options.plan.timeline, {options.common.config, options.plan.machine});
  const RunSpec spec = chosen_phase(load_run_spec(options.common, options.plan.launch), options.phase);
  const Situation situation = find_situation(Variables::of_process());
  const bool json = options.common.json;
  if (situation.supervised) return measure_for_plan(spec, options.plan.launch, json, situation);
  Plan plan;
  std::optional<Failure> failed;
  if (options.plan.machine.empty()) {
    failed = plan_for_this_machine(spec, options.plan, options.common, situation, plan);
  } else {
    plan = plan_for_machine(spec, options.plan);
  }
  if (failed) return report(*failed, json, situation);
  if (json) {
    answer(to_json(plan));
  } else if (!options.common.quiet) {
    answer(to_text(plan));
  }
  return 0;
}

// A check for CLI11: returns why the text is refused, or "".
std::string check_nodes(const std::string& text) {
  const auto nodes = parse_integer(text);
  return nodes && *nodes >= 1 && *nodes <= max_slots ? "" : format("must be a number from 1 to {}", max_slots);
}

}  // namespace

Subcommand plan_subcommand() {
  return {"plan", "Predicts a run's memory, time and traffic on any number of ranks, and ranks the alternatives",
          "trainctl plan cifar10.yaml --ranks 64 --machine h100-node", [](CLI::App& app) {
            auto options = std::make_shared<PlanCommand>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->plan.launch);
            app.add_option(
                   "--machine", options->plan.machine,
                   "The name of a machine in configs/machines, or a file like those there; default: this machine")
                ->type_name("FILE");
            app.add_option("--nodes", options->plan.nodes, "Number of nodes; default: as few as can hold the ranks")
                ->check(check_nodes);
            add_phase_option(app, options->phase);
            app.add_option("--timeline", options->plan.timeline,
                           "Writes a timeline of the simulated step, which Perfetto opens")
                ->type_name("FILE");
            return [options] { return run_plan(*options); };
          }};
}

}  // namespace trainctl
