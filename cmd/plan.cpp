// trainctl plan: what a run would take on ranks that need not be there: memory, time by part, alternatives. Starts
// ranks only to measure this machine.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cmd/job.h"
#include "cmd/machine_file.h"
#include "cmd/measuring.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/kernels/kernel_cache.h"
#include "io/loader/data.h"
#include "parallel/launch/report.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/report.h"
#include "parallel/plan/roofline.h"
#include "parallel/plan/timeline.h"
#include "parallel/trainer/batch_sizes.h"

namespace trainctl {
namespace {

struct PlanOptions {
  CommonOptions common;
  LaunchFlags launch;
  int nodes = 0;  // 0: as few as hold the ranks
  std::string machine;
  std::string timeline;
};

// What a plan is for; owns what the target refers to.
struct Site {
  int ranks = 1;
  PlanTarget target;
  std::unique_ptr<Backend> backend;  // of this machine
  KernelChoices choices;
  std::unique_ptr<Costs> costs;
};

// Adds the memory of prefetched batches.
std::function<Compiled(const std::vector<Program>&, int)> with_batches(
    const RunSpec& spec, const DataInfo& info, int ranks,
    std::function<Compiled(const std::vector<Program>&)> compile_programs) {
  return [&spec, &info, ranks, compile_programs = std::move(compile_programs)](const std::vector<Program>& programs,
                                                                               int replicas) {
    Compiled compiled = compile_programs(programs);
    compiled.memory.prefetched = batch_bytes(spec.data, info, spec.train.global_batch(ranks), replica(0, replicas),
                                             programs.front().target_forms);
    return compiled;
  };
}

int ranks_per_node(int ranks, int nodes, const Machine& machine, const std::string& name) {
  const int devices = machine.node.devices;
  const int least = (ranks + devices - 1) / devices;
  if (nodes != 0 && nodes < least) {
    throw Error(ErrorKind::config,
                format("{} nodes of '{}' have {} devices, fewer than {} ranks", nodes, name, nodes * devices, ranks),
                format("state at least {} nodes", least));
  }
  const int used = nodes == 0 ? least : nodes;
  if (used > 1 && !machine.network) {
    throw Error(ErrorKind::config,
                format("'{}' is one node of {} devices, and has no network to others", name, devices),
                format("plan for at most {} ranks, or add `network` to the machine's file", devices));
  }
  return nodes == 0 ? std::min(ranks, devices) : (ranks + used - 1) / used;
}

Site described_site(const RunSpec& spec, const PlanOptions& options, int ranks, const Machine& machine,
                    const DataInfo& info) {
  Site site;
  site.ranks = ranks;
  PlanTarget& target = site.target;
  target.nodes.ranks_per_node = ranks_per_node(ranks, options.nodes, machine, options.machine);
  target.about = machine.about.empty() ? options.machine : machine.about;
  target.traits = machine.traits();
  target.memory = machine.device.memory.bytes;
  target.storage = machine.host.storage * 1e9;
  site.costs = std::make_unique<RooflineCosts>(
      machine, RooflineUse{spec.train.tf32, spec.data.dataset.as<DatasetOptions>().holds_image_files(),
                           target.nodes.ranks_per_node});
  target.compile = with_batches(spec, info, ranks, [traits = target.traits](const std::vector<Program>& programs) {
    return compile_without_kernels(programs, traits);
  });
  return site;
}

Site this_site(const RunSpec& spec, const PlanOptions& options, const LaunchPlan& launch) {
  if (options.nodes > 1) {
    throw Error(ErrorKind::config, "several nodes are planned for a machine that is described",
                "state it: --machine h100-node");
  }
  Site site;
  site.ranks = launch.ranks;
  site.backend = make_backend(spec.cluster, spec.train, spec.strategy, launch.threads, 0);
  PlanTarget& target = site.target;
  target.nodes.ranks_per_node = launch.ranks;
  target.about = site.backend->fingerprint();
  target.traits = traits_of(*site.backend);
  target.memory = memory_of_rank(spec.cluster, *site.backend, launch.ranks).bytes;
  target.exact = true;
  return site;
}

Prediction predict(const RunSpec& spec, const DataInfo& info, const Site& site, BatchSizes sizes,
                   const PredictionDetails& details = {}) {
  const Strategy strategy = strategy_for(spec, info, site.ranks, site.target.traits);
  return predict(program_spec(spec, info), strategy, sizes, site.target, details);
}

// One of them, without evaluation and the last batch of an epoch, which take no more; nothing where the network does
// not take it.
std::optional<Alternative> try_alternative(const RunSpec& other, const DataInfo& info, const Site& site) {
  try {
    BatchSizes sizes = batch_sizes(other.train, other.strategy, info, site.ranks);
    sizes.training_last = sizes.training_resumed_last = sizes.evaluation = sizes.evaluation_last = 0;
    const Prediction prediction = predict(other, info, site, sizes);
    return Alternative{other.strategy,
                       prediction.mesh(),
                       prediction.micro_batches(),
                       other.train.gradient_accumulation,
                       prediction.memory(),
                       prediction.fits(site.target),
                       prediction.step.seconds,
                       prediction.samples_per_second()};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config && error.kind() != ErrorKind::internal) throw;
    log::debug(format("no alternative: {}", error.what()));
    return {};
  }
}

// The alternatives that the network takes; where what is stated does not fit, also with smaller micro-batches.
std::vector<Alternative> find_alternatives(const RunSpec& spec, const DataInfo& info, const Site& site, bool fits) {
  constexpr int most_parts = 16;
  std::vector<Alternative> found;
  for (const StrategyOptions& options : alternatives(spec.strategy, site.ranks, site.target.nodes.ranks_per_node)) {
    for (int parts = 1; parts <= (fits || options.stages() > 1 ? 1 : most_parts); parts *= 2) {
      RunSpec other = spec;
      other.strategy = options;
      other.train.gradient_accumulation *= parts;
      const std::optional<Alternative> alternative = try_alternative(other, info, site);
      if (alternative) found.push_back(*alternative);
      if (!alternative || alternative->fits) break;
    }
  }
  return found;
}

// As a rank that the plan has started: measures.
int measure(const RunSpec& spec, const PlanOptions& options, const Situation& situation) {
  RankCommand command = rank_command("plan", Value<RunSpec>::write(spec), spec.cluster, options.launch);
  command.stated_ranks.reset();  // fewer measure where not all could compute at once
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    const int ranks = stated_ranks(spec.cluster, options.launch.ranks).value_or(context.world.size());
    bool at_hand = true;
    RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
    measure_together(planned_runs(spec, ranks, known_data(spec, spec.train.global_batch(ranks), at_hand)), device,
                     context);
    return 0;
  });
}

int run_plan(PlanOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (situation.supervised) return measure(spec, options, situation);
  const std::optional<Machine> machine =
      options.machine.empty() ? std::nullopt : std::make_optional(load_machine(options.machine));
  LaunchPlan launch;
  if (machine) {
    launch.ranks =
        stated_ranks(spec.cluster, options.launch.ranks).value_or(std::max(options.nodes, 1) * machine->node.devices);
  } else {
    launch = plan_launch(launch_request(spec.cluster, options.launch));
  }
  Plan plan;
  const DataInfo info = known_data(spec, spec.train.global_batch(launch.ranks), plan.data_at_hand);
  Site site = machine ? described_site(spec, options, launch.ranks, *machine, info) : this_site(spec, options, launch);
  if (!machine) {
    const PlannedRuns runs = planned_runs(spec, launch.ranks, info);
    const int code = complete_measurements(runs, launch, *site.backend, options.common, options.launch, situation);
    if (code != 0) return code;
    site.costs = measured_costs(runs, measured_at_once(launch.ranks, *site.backend), *site.backend, launch.threads);
    site.choices = load_kernel_choices(site.backend->fingerprint());
    site.choices.stop_timing();
    site.target.compile = with_batches(spec, info, site.ranks, [&site](const std::vector<Program>& programs) {
      return compile(programs, *site.backend, site.choices);
    });
  }
  site.target.costs = site.costs.get();
  plan.name = spec.name;
  plan.compute = spec.train.compute();
  plan.gradient_accumulation = spec.train.gradient_accumulation;
  const BatchSizes sizes = batch_sizes(spec.train, spec.strategy, info, site.ranks);
  plan.prediction = predict(spec, info, site, sizes, {.lines = true, .timeline = !options.timeline.empty()});
  if (!options.timeline.empty()) write_file(options.timeline, timeline_of(plan.prediction));
  if (site.choices.assumed() > 0) site.target.exact = false;
  plan.target = site.target;
  plan.length = training_length(plan.prediction, spec.train, info.training_samples);
  plan.alternatives = find_alternatives(spec, info, site, plan.prediction.fits(site.target));
  rank_alternatives(plan);
  if (options.common.json) {
    answer(to_json(plan));
  } else if (!options.common.quiet) {
    answer(to_text(plan));
  }
  return 0;
}

// A check for CLI11: returns why the text is refused, or "".
std::string check_nodes(const std::string& text) {
  const auto nodes = parse_integer(text);
  return nodes && *nodes >= 1 && *nodes <= most_slots ? "" : format("wants a number from 1 to {}", most_slots);
}

}  // namespace

Subcommand plan_subcommand() {
  return {
      "plan", "Predicts a run's memory, time and traffic on any number of ranks, and ranks the alternatives",
      "trainctl plan configs/cifar10-resnet20.yaml --ranks 64 --machine h100-node", [](CLI::App& app) {
        auto options = std::make_shared<PlanOptions>();
        add_config_options(app, options->common);
        add_output_options(app, options->common);
        add_launch_options(app, options->launch);
        app.add_option("--machine", options->machine,
                       "A machine of configs/machines by name, or a file like them; default: this machine")
            ->type_name("FILE");
        app.add_option("--nodes", options->nodes, "On how many nodes the ranks lie; default: as few as hold them")
            ->check(check_nodes);
        app.add_option("--timeline", options->timeline, "Writes the simulated step for Perfetto")->type_name("FILE");
        return [options] { return run_plan(*options); };
      }};
}

}  // namespace trainctl
