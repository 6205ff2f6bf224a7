// trainctl plan: predicts the memory of a run, the time of each part of its step, and alternatives, on ranks that need
// not exist. Starts ranks only to measure this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/checked.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/spec/suggestion.h"
#include "io/checkpoint/atomic_file.h"
#include "io/loader/data.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/machine.h"
#include "parallel/plan/report.h"
#include "parallel/plan/roofline.h"
#include "parallel/plan/timeline.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/planning/measuring.h"
#include "run/planning/planned_runs.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  const auto folder = find_in_configs("machines");
  if (!folder) return names;
  for (const FolderEntry& entry : list_folder(folder->string(), {ErrorKind::config})) {
    const fs::path file = entry.name;
    if (file.extension() == ".yaml") names.push_back(file.stem().string());
  }
  return names;
}

std::string path_of(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) return name;
  if (const auto found = find_in_configs(fs::path("machines") / (name + ".yaml"))) return found->string();
  const std::vector<std::string> names = machine_names();
  throw Error(ErrorKind::config, format("there is no machine '{}'{}", name, suggestion(name, names)),
              format("use {}, or the path of a file like them", join_or(names)));
}

// Loads a machine: `h100-node` means configs/machines/h100-node.yaml; a name with a slash or an ending is a path.
// Throws ConfigError with all errors of the file, or Error{config} with the known names if there is no such machine.
Machine load_machine(const std::string& name) {
  Reader reader;
  const Node document = load_yaml(path_of(name), environment(), reader);
  reader.throw_if_failed();
  Machine machine;
  const ReadingContext context(reader, "the machine");
  Value<Machine>::read(document, reader, machine);
  reader.throw_if_failed();
  return machine;
}

struct PlanOptions {
  CommonOptions common;
  LaunchFlags launch;
  int nodes = 0;  // 0: as few as can hold the ranks
  int phase = 0;  // counted from 1; 0: the last one
  std::string machine;
  std::string timeline;
};

int ranks_per_node(int ranks, int nodes, const Machine& machine, const std::string& name) {
  const int devices = machine.node.devices;
  const int least = (ranks + devices - 1) / devices;
  if (nodes != 0 && nodes < least) {
    throw Error(ErrorKind::config,
                format("{} nodes of '{}' have {} devices, fewer than {} ranks", nodes, name, nodes * devices, ranks),
                format("use at least {} nodes", least));
  }
  if (nodes > ranks) {
    throw Error(ErrorKind::config, format("{} nodes are more than the {} ranks that would run on them", nodes, ranks),
                "use more ranks (--ranks), or fewer nodes");
  }
  const int used = nodes == 0 ? least : nodes;
  if (used > 1 && !machine.network) {
    throw Error(ErrorKind::config,
                format("'{}' describes one node of {} devices, without a network to other nodes", name, devices),
                format("plan for at most {} ranks, or add `network` to the machine's file", devices));
  }
  return nodes == 0 ? std::min(ranks, devices) : (ranks + used - 1) / used;
}

PlanTarget described_target(const PlanRequest& request, const Machine& machine, const std::string& name) {
  PlanTarget target;
  target.about = machine.about.empty() ? name : machine.about;
  target.nodes.ranks_per_node = request.ranks_per_node;
  target.memory = request.memory;
  target.storage = machine.host.storage * 1e9;
  target.costs = std::make_shared<RooflineCosts>(
      machine, RooflineUse{request.spec.train.tf32, request.spec.data.dataset.as<DatasetOptions>().holds_image_files(),
                           request.ranks_per_node});
  target.compile = [&request](const std::vector<Program>& programs, const BatchDivision& division) {
    Compiled compiled =
        with_host_memory(compile_without_kernels(programs, request.device), request.spec, request.data, division);
    // The rank represents all ranks of its stage, of which the one in the first replica writes the most.
    const MeshRank writer(division.rank.mesh, division.rank.index_in_replica());
    compiled.memory.staged = staged_bytes(compiled, request.spec.checkpoint, writer);
    return compiled;
  };
  return target;
}

// Memory is exact here, so every rank with its own programs is predicted.
PlanRequest request_for_this_machine(const RunSpec& spec, const DataInfo& data, int ranks, const Backend& backend,
                                     std::int64_t memory) {
  return {spec, data, ranks, ranks, traits_of(backend), PlannedRanks::own_programs, memory};
}

// Measures this machine, on one of the ranks that the plan has started.
int measure(const RunSpec& spec, const PlanOptions& options, const Situation& situation) {
  RankCommand command = rank_command("plan", Value<RunSpec>::write(spec), spec.cluster, options.launch);
  command.requested_ranks.reset();  // fewer ranks measure if not all can compute at the same time
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    const int ranks = requested_ranks(spec.cluster, options.launch.ranks).value_or(context.world.size());
    bool at_hand = true;
    RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
    const DataInfo data = known_data(spec, spec.train.global_batch(ranks), at_hand);
    const std::int64_t memory = memory_of_every_rank(spec.cluster, device, context.world);
    measure_together(request_for_this_machine(spec, data, ranks, *device.backend, memory), device, context);
    return 0;
  });
}

// Alternatives without a pipeline that do not fit are tried with up to 16 times as many micro-batches.
constexpr int max_micro_batch_factor = 16;

// The seconds between two checkpoints of a fixed interval; 0: unknown.
double seconds_between(const Duration& every, const Plan& plan, const TrainOptions& train) {
  if (every.unit == Duration::Unit::seconds) return every.amount;
  if (every.unit == Duration::Unit::steps) return every.amount * plan.prediction.step.seconds;
  const double epochs = train.epochs && plan.data_at_hand ? static_cast<double>(*train.epochs) : 0;
  return epochs > 0 ? every.amount * plan.length.seconds / epochs : 0;
}

// Adds to a plan how often it saves and what a failure costs. `cores`: of all hosts.
void predict_failures(Plan& plan, const PlanRequest& request, int cores) {
  const RunSpec& spec = request.spec;
  const int hosts = static_cast<int>(divide_up(request.ranks, request.ranks_per_node));
  const double failures = spec.cluster.time_between_failures(hosts);
  if (spec.checkpoint.every.is_auto()) {
    const ExpectedSaves saves =
        expected_saves(plan.prediction, failures, plan.target.storage, spec.checkpoint.background_savers());
    if (saves.steps > 0) plan.saves = saves;
  }
  if (request.ranks == 1) return;
  double interval = plan.saves ? plan.saves->seconds : 0;
  if (const auto& every = spec.checkpoint.every.given) interval = seconds_between(*every, plan, spec.train);
  plan.recovery = predict_recovery(plan.prediction, plan.target,
                                   {.ranks = request.ranks,
                                    .hosts = hosts,
                                    .cores = cores,
                                    .failures = failures,
                                    .interval = interval,
                                    .hang_timeout = spec.cluster.hang_timeout,
                                    .timeout = spec.cluster.timeout.value});
}

// Predicts the run and its alternatives, and prints them. With `strategy: auto` the run is the alternative that would
// be chosen. `choices`: the kernel choices that the target compiles with; null: none are known. `cores`: of all hosts.
int show_plan(Plan plan, PlanRequest& request, const PlanOptions& options, const KernelChoices* choices, int cores) {
  RunSpec& spec = request.spec;
  plan.name = spec.name;
  plan.compute = spec.train.compute();
  plan.gradient_accumulation = spec.train.gradient_accumulation;
  plan.automatic = spec.strategy.automatic && request.ranks > 1;
  if (spec.strategy.automatic) {
    plan.alternatives = predict_alternatives(request, plan.target, 1);
    if (plan.alternatives.empty()) throw Error(ErrorKind::config, no_strategy_text, "use another number of ranks");
    spec.strategy = std::ranges::min_element(plan.alternatives, is_preferred)->options;
  }
  plan.prediction = predict(with_recomputed_blocks(request, configured_run(request), plan.target.compile), plan.target,
                            {.lines = true, .timeline = !options.timeline.empty()});
  plan.target.exact = choices != nullptr && choices->assumed() == 0;
  if (!options.timeline.empty()) write_file(options.timeline, timeline_of(plan.prediction));
  plan.length = training_length(plan.prediction, spec.train, request.data.training_samples);
  std::vector<const Program*> stages;
  for (const PlannedStage& stage : plan.prediction.stages) stages.push_back(&stage.programs.programs().front());
  plan.shared_memory = shared_memory_bytes(stages, spec.checkpoint);
  predict_failures(plan, request, cores);
  const bool fits = plan.prediction.fits(plan.target);
  if (!plan.automatic || !fits)
    plan.alternatives = predict_alternatives(request, plan.target, fits ? 1 : max_micro_batch_factor);
  rank_alternatives(plan);
  if (options.common.json) {
    answer(to_json(plan));
  } else if (!options.common.quiet) {
    answer(to_text(plan));
  }
  return 0;
}

int plan_for_machine(const PlanOptions& options, const RunSpec& spec) {
  const Machine machine = load_machine(options.machine);
  const int ranks =
      requested_ranks(spec.cluster, options.launch.ranks).value_or(std::max(options.nodes, 1) * machine.node.devices);
  Plan plan;
  const DataInfo data = known_data(spec, spec.train.global_batch(ranks), plan.data_at_hand);
  const int per_node = ranks_per_node(ranks, options.nodes, machine, options.machine);
  require_layers_within_nodes(spec.strategy, ranks, per_node);
  PlanRequest request{spec,
                      data,
                      ranks,
                      per_node,
                      machine.traits(),
                      PlannedRanks::stages,
                      memory_of_rank(spec.cluster, machine.device.memory.bytes).bytes};
  plan.target = described_target(request, machine, options.machine);
  return show_plan(std::move(plan), request, options, nullptr, ranks);  // a core for each rank is assumed
}

// Plans for this machine, which is measured first if that was not done before.
int plan_for_this_machine(const PlanOptions& options, const RunSpec& spec, const Situation& situation) {
  const LaunchPlan launch = plan_launch(launch_request(spec.cluster, options.launch));
  Plan plan;
  const DataInfo data = known_data(spec, spec.train.global_batch(launch.ranks), plan.data_at_hand);
  if (options.nodes > 1) {
    throw Error(ErrorKind::config, "a plan for several nodes requires the description of a machine",
                "add one, such as --machine h100-node");
  }
  const auto backend = make_backend(spec.cluster, spec.train, spec.strategy, launch.threads, 0);
  const std::int64_t memory = memory_of_rank(spec.cluster, *backend, launch).bytes;
  PlanRequest request = request_for_this_machine(spec, data, launch.ranks, *backend, memory);
  const std::optional<Failure> failed =
      complete_measurements(request, launch, *backend, launched_config(options.common), options.launch, situation);
  if (failed) return report(*failed, options.common.json, situation);
  const int at_once = measured_at_once(launch.ranks, *backend);
  const MeasuredTarget measured = measured_target(request, at_once, *backend, launch.threads);
  plan.target = measured.target;
  return show_plan(std::move(plan), request, options, measured.choices.get(), launch.cores_here);
}

int run_plan(PlanOptions& options) {
  const RunSpec spec = chosen_phase(load_run_spec(options.common, options.launch), options.phase);
  const Situation situation = find_situation(Variables::of_process());
  if (situation.supervised) return measure(spec, options, situation);
  return options.machine.empty() ? plan_for_this_machine(options, spec, situation) : plan_for_machine(options, spec);
}

// A check for CLI11: returns why the text is refused, or "".
std::string check_nodes(const std::string& text) {
  const auto nodes = parse_integer(text);
  return nodes && *nodes >= 1 && *nodes <= max_slots ? "" : format("must be a number from 1 to {}", max_slots);
}

}  // namespace

Subcommand plan_subcommand() {
  return {
      "plan", "Predicts a run's memory, time and traffic on any number of ranks, and ranks the alternatives",
      "trainctl plan cifar10.yaml --ranks 64 --machine h100-node", [](CLI::App& app) {
        auto options = std::make_shared<PlanOptions>();
        add_config_options(app, options->common);
        add_output_options(app, options->common);
        add_launch_options(app, options->launch);
        app.add_option("--machine", options->machine,
                       "The name of a machine in configs/machines, or a file like those there; default: this machine")
            ->type_name("FILE");
        app.add_option("--nodes", options->nodes, "Number of nodes; default: as few as can hold the ranks")
            ->check(check_nodes);
        add_phase_option(app, options->phase);
        app.add_option("--timeline", options->timeline, "Writes a timeline of the simulated step, which Perfetto opens")
            ->type_name("FILE");
        return [options] { return run_plan(*options); };
      }};
}

}  // namespace trainctl
