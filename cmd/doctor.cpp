// trainctl doctor: shows the resources of a run's machines and their problems, and whether a run would start there.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "io/loader/data.h"
#include "io/metrics/run_directory.h"
#include "parallel/comm/text.h"
#include "parallel/health/doctor/doctor.h"
#include "parallel/health/doctor/exchanges.h"
#include "parallel/health/doctor/nccl/capture.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "parallel/launch/supervisor/outcome.h"
#include "parallel/plan/prediction.h"
#include "run/job/device.h"
#include "run/job/job.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct DoctorOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string run_directory;
  bool gpus = false;  // whether the data that GPUs exchange is checked
};

// The longest wait for data that GPUs exchange, in seconds.
constexpr double longest_exchange = 60;

// Returns why a run could not use its directory; "" if it could.
std::string why_no_run_directory(const DoctorOptions& options, const RunSpec& spec) {
  try {
    std::string directory = options.run_directory.empty() ? "runs/" + spec.name : options.run_directory;
    if (!options.common.config.empty()) {
      const RunDirectory found({spec.name, options.run_directory, true, Value<RunSpec>::write(spec)});
      if (found.is_finished()) return "";
      directory = found.path();
    }
    probe_run_directory(directory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Does what a run does on its device before its first step: with a config it opens the data, chooses kernels and
// allocates memory; without a config it tries kernels on the GPU. Returns the bytes of a checkpoint, or 0 without a
// config.
std::int64_t set_up_run(const RunSpec& spec, bool has_config, RankDevice& device, RankContext& context) {
  if (!has_config && !device.backend->on_host()) try_kernels(*device.backend);
  if (!has_config) return 0;
  const Data data(spec.data, spec.seed, data_use(spec));
  const Job job(spec, data.info(), device, context.world, {}, "");
  return checkpoint_bytes({&job.programs().programs().front()}, spec.checkpoint.weights_only);
}

// Prints the findings so far, before the steps that may fail. Text: everything except the verdict. JSON: a report, only
// for a supervisor, which uses the last report that it receives.
void show_first(bool json, bool supervised, const std::vector<Json>& info, const std::vector<Problem>& problems) {
  if (!json) write_output(findings_text(info, problems));
  if (json && supervised) write_output(doctor_json(info, problems));
}

// Adds the links that NCCL chooses between the GPUs, and the slow choices; prints them as show_first() does.
void examine_links(const NcclLogCapture& log, bool json, RankDevice& device, RankContext& context,
                   std::vector<Json>& info, std::vector<Problem>& problems) {
  World& world = context.world;
  for (Problem& slow : add_nccl_choices(log, *device.peers, *device.backend, world, device.host, info)) {
    problems.push_back(std::move(slow));
  }
  if (world.rank() != 0) return;
  if (!json) write_output(nccl_text(info));
  if (json && context.situation.supervised) write_output(doctor_json(info, problems));
}

// Checks the data that each two GPUs exchange, and adds the result to the information about rank 0.
void check_exchanges(RankDevice& device, World& world, std::vector<Json>& info, std::vector<Problem>& problems) {
  if (!device.peers) {
    const std::string why = world.size() > 1 ? "the ranks compute on CPUs" : "there is one rank";
    if (world.rank() == 0) problems.push_back({false, "", "no data between GPUs was checked: " + why, ""});
    return;
  }
  const std::vector<Exchange> exchanges =
      exchange_data(*device.peers, *device.backend, world.communicator(), device.host);
  if (world.rank() != 0) return;
  info.front()["exchanges"] = to_json(exchanges);
  for (Problem& problem : problems_of(exchanges, world.hosts())) problems.push_back(std::move(problem));
}

// Prints the verdict or, as JSON, the whole report. `shown`: the number of problems that were printed before.
void show_last(bool json, const std::vector<Json>& info, const std::vector<Problem>& problems, std::size_t shown) {
  answer(json ? doctor_json(info, problems) : verdict_text(problems, shown));
}

// Examines the machines, on every rank of the run. `launch_problem`: why the ranks could not be started; if it is not
// empty, this process runs alone.
int examine(const DoctorOptions& options, const RunSpec& spec, const std::string& launch_problem,
            RankContext& context) {
  World& world = context.world;
  const bool shows = world.rank() == 0, json = options.common.json;
  ImmediateStream host;
  std::optional<NcclLogCapture> nccl_log;
  if (world.size() > 1 && spec.cluster.device != DeviceChoice::cpu) nccl_log.emplace();
  const std::string directory = options.run_directory.empty() ? "runs/" + spec.name : options.run_directory;
  std::vector<Json> info = gather_info(directory, context, host);
  Json network = measure_network(world, host);
  std::vector<Problem> problems;
  if (shows) {
    const std::string why = why_no_run_directory(options, spec);
    info.front()["run_directory"]["why"] = why;
    info.front()["network"] = std::move(network);
    if (!why.empty()) info.front()["run_directory"]["writable"] = false;
    problems = find_problems(info, std::string(name_of(spec.cluster.device)),
                             std::string(name_of(spec.cluster.communication)));
    if (!launch_problem.empty() && !stops(problems)) problems.push_back({true, "", launch_problem, ""});
    show_first(json, context.situation.supervised, info, problems);
  }
  const std::size_t shown = problems.size();
  bool stopped = any_rank(stops(problems), world.communicator(), host);
  if (!stopped) {
    try {
      RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
      if (nccl_log && device.peers && device.peers->name() == "nccl") {
        examine_links(*nccl_log, json, device, context, info, problems);
      }
      if (options.gpus) check_exchanges(device, world, info, problems);
      const std::int64_t checkpoint = set_up_run(spec, !options.common.config.empty(), device, context);
      if (shows) add_space_problem(info.front(), checkpoint, problems);
      stopped = any_rank(stops(problems), world.communicator(), host);
    } catch (const Error& error) {
      problems.push_back({true, "", error.what(), ""});
      stopped = true;
      const bool all_know = world.size() == 1 || dynamic_cast<const CollectiveError*>(&error) != nullptr;
      if (!all_know) {  // other ranks may wait for this rank: the error ends them, and a supervisor reports it
        if (shows && !context.situation.supervised) show_last(json, info, problems, shown);
        throw;
      }
    }
  }
  if (shows) show_last(json, info, problems, shown);
  return stopped ? exit_code(ErrorKind::answer_is_no) : 0;
}

// Prints a report that has this problem alone and no machines.
void show_alone(bool json, const std::string& problem) { show_last(json, {}, {{true, "", problem, ""}}, 0); }

// Returns the last line of the ranks' output; "" if there is none.
std::string last_line(const std::string& output) {
  if (output.size() < 2) return "";
  const std::size_t before = output.find_last_of('\n', output.size() - 2);
  return output.substr(before == std::string::npos ? 0 : before + 1);
}

// Reports an examination by ranks that this process supervised. Rank 0 prints its findings while it runs; this process
// adds how the ranks ended if they ended before they had finished.
int report_examination(const DoctorOptions& options, const Outcome& ranks) {
  const bool json = options.common.json;
  const Failure& end = ranks.end;
  const std::string report = last_line(ranks.output);
  const int code = end.exit_code, no = exit_code(ErrorKind::answer_is_no);
  if (code == exit_code(ErrorKind::interrupted)) return trainctl::report(end, json, find_situation({}));
  std::string failure = end.message;
  if (failure.empty() && code != 0 && code != no) failure = format("the ranks ended with exit code {}", code);
  if (failure.empty()) {
    answer(report);
  } else if (json && !report.empty()) {
    answer(with_problem(report, {true, "", failure, ""}));
  } else {
    show_alone(json, failure);
  }
  return code == 0 ? 0 : no;
}

int run_doctor(DoctorOptions& options) {
  const int no = exit_code(ErrorKind::answer_is_no);
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
    show_alone(options.common.json, error.what());
    return no;
  }
  if (options.gpus) spec.cluster.timeout.value = std::min(spec.cluster.timeout.value, longest_exchange);
  const Situation situation = find_situation(Variables::of_process());
  std::string launch_problem;
  std::optional<Outcome> ranks;
  RankCommand command;
  try {
    command = rank_command("doctor", Value<RunSpec>::write(spec), spec.cluster, options.launch);
    auto plan = plan_ranks(spec.cluster, options.launch, launched_config(options.common), situation);
    constexpr std::chrono::milliseconds longest(60'000);  // a run waits longer
    if (plan) plan->start_timeout = plan->start_timeout.count() > 0 ? std::min(plan->start_timeout, longest) : longest;
    if (plan) ranks = run_ranks(*plan, {.stops_in_order = false, .holds_output = options.common.json});
  } catch (const Error& error) {
    launch_problem = error.what();
  }
  if (ranks) return report_examination(options, *ranks);
  return run_as_rank(situation, options.common.json, command,
                     [&](RankContext& context) { return examine(options, spec, launch_problem, context); });
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
        app.add_flag("--gpus", options->gpus,
                     "Also sends random data between each two GPUs, in both directions, and compares it bit by bit");
        app.add_option("--run-dir", options->run_directory, "The run's directory; default: runs/<name>")
            ->type_name("PATH");
        return [options] { return run_doctor(*options); };
      }};
}

}  // namespace trainctl
