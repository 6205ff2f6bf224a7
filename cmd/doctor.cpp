// trainctl doctor: shows the resources of a run's machines and their problems, and whether a run would start there.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "parallel/launch/supervisor/outcome.h"
#include "run/doctor/examination.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct DoctorOptions {
  CommonOptions common;
  LaunchFlags launch;
  ExaminationRequest request;
};

// The longest wait for data that GPUs exchange, in seconds.
constexpr double longest_exchange = 60;

int run_doctor(DoctorOptions& options) {
  const bool json = options.common.json;
  RunSpec spec;
  spec.name = "run";
  try {
    require_working_directory();  // the path of the run directory may be relative to it
    if (!options.common.config.empty()) {
      spec = load_run_spec(options.common, options.launch);
    } else if (!options.launch.device.empty()) {
      spec.cluster.device = options.launch.device == "cuda"  ? DeviceChoice::cuda
                            : options.launch.device == "cpu" ? DeviceChoice::cpu
                                                             : DeviceChoice::automatic;
    }
  } catch (const Error& error) {
    report_problem(json, error.what());
    return exit_code(ErrorKind::answer_is_no);
  }
  if (options.request.gpus) spec.cluster.timeout.value = std::min(spec.cluster.timeout.value, longest_exchange);
  const Situation situation = find_situation(Variables::of_process());
  std::string launch_problem;
  std::optional<Outcome> ranks;
  RankCommand command;
  try {
    command = rank_command("doctor", Value<RunSpec>::write(spec), spec.cluster, options.launch);
    auto plan = plan_ranks(spec.cluster, options.launch, launched_config(options.common), situation);
    constexpr std::chrono::milliseconds longest(60'000);       // a run waits longer
    const auto limit = [=](std::chrono::milliseconds& time) {  // zero: there was no limit
      time = time.count() > 0 ? std::min(time, longest) : longest;
    };
    if (plan) {
      limit(plan->start_timeout);
      limit(plan->timeout);
    }
    if (plan) ranks = run_ranks(*plan, {.stops_in_order = false, .holds_output = json});
  } catch (const Error& error) {
    launch_problem = error.what();
  }
  if (ranks) return report_examination(json, *ranks);
  options.request.has_config = !options.common.config.empty();
  options.request.json = json;
  return run_as_rank(situation, json, command,
                     [&](RankContext& context) { return examine(spec, options.request, launch_problem, context); });
}

}  // namespace

Subcommand doctor_subcommand() {
  return {
      "doctor", "Shows the resources of a run's machines and their problems, and whether the run would start",
      "trainctl doctor --device cuda", [](CLI::App& app) {
        auto options = std::make_shared<DoctorOptions>();
        app.add_option("CONFIG", options->common.config, "The run's YAML file; without it, checks what every run needs")
            ->type_name("");
        app.add_option("--set", options->common.sets, "Replaces a value of the config (repeatable)")
            ->type_name("PATH=VALUE")
            ->allow_extra_args(false);
        add_output_options(app, options->common);
        add_launch_options(app, options->launch);
        app.add_flag("--gpus", options->request.gpus,
                     "Also sends random data between every two GPUs, in both directions, and compares it bit by bit");
        app.add_option("--run-dir", options->request.run_directory, "The run's directory; default: runs/<name>")
            ->type_name("PATH");
        return [options] { return run_doctor(*options); };
      }};
}

}  // namespace trainctl
