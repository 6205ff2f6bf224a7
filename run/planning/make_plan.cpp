// Predicts a run, its alternatives and the cost of its failures.
#include "run/planning/make_plan.h"

#include <algorithm>
#include <vector>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "io/checkpoint/atomic_file.h"
#include "io/loader/data.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/timeline.h"
#include "run/given_config.h"
#include "run/job/job.h"
#include "run/planning/described_machine.h"
#include "run/planning/measuring.h"
#include "run/planning/planned_runs.h"

namespace trainctl {
namespace {

// Memory is exact here, so every rank with its own programs is predicted.
PlanRequest request_for_this_machine(const RunSpec& spec, const DataInfo& data, int ranks, const Backend& backend,
                                     std::int64_t memory) {
  return {spec, data, ranks, ranks, traits_of(backend), PlannedRanks::own_programs, memory};
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

// Predicts the run and its alternatives. With `strategy: auto` the run is the alternative that would be chosen.
// `choices`: the kernel choices that the target compiles with; null: none are known. `cores`: of all hosts.
void finish_plan(Plan& plan, PlanRequest& request, const std::string& timeline, const KernelChoices* choices,
                 int cores) {
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
                            {.lines = true, .timeline = !timeline.empty()});
  plan.target.exact = choices != nullptr && choices->assumed() == 0;
  if (!timeline.empty()) write_file(timeline, timeline_of(plan.prediction));
  plan.length = training_length(plan.prediction, spec.train, request.data.training_samples);
  std::vector<const Program*> stages;
  for (const PlannedStage& stage : plan.prediction.stages) stages.push_back(&stage.programs.programs().front());
  plan.shared_memory = shared_memory_bytes(stages, spec.checkpoint);
  predict_failures(plan, request, cores);
  const bool fits = plan.prediction.fits(plan.target);
  if (!plan.automatic || !fits)
    plan.alternatives = predict_alternatives(request, plan.target, fits ? 1 : max_micro_batch_factor);
  rank_alternatives(plan);
  plan.target.compile = nullptr;  // refers to the request and the backend, which the plan outlives
  plan.target.costs.reset();
}

}  // namespace

Plan plan_for_machine(const RunSpec& spec, const PlanOptions& options) {
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
  finish_plan(plan, request, options.timeline, nullptr, ranks);  // a core for each rank is assumed
  return plan;
}

std::optional<Failure> plan_for_this_machine(const RunSpec& spec, const PlanOptions& options, const GivenConfig& given,
                                             const Situation& situation, Plan& plan) {
  const LaunchPlan launch = plan_launch(launch_request(spec.cluster, options.launch));
  const DataInfo data = known_data(spec, spec.train.global_batch(launch.ranks), plan.data_at_hand);
  if (options.nodes > 1) {
    throw Error(ErrorKind::config, "a plan for several nodes requires the description of a machine",
                "add one, such as --machine h100-node");
  }
  const auto backend = make_backend(spec.cluster, spec.train, spec.strategy, launch.threads, 0);
  const std::int64_t memory = memory_of_rank(spec.cluster, *backend, launch).bytes;
  PlanRequest request = request_for_this_machine(spec, data, launch.ranks, *backend, memory);
  std::optional<Failure> failed =
      complete_measurements(request, launch, *backend, launched_config(given), options.launch, situation);
  if (failed) return failed;
  const int at_once = measured_at_once(launch.ranks, *backend);
  const MeasuredTarget measured = measured_target(request, at_once, *backend, launch.threads);
  plan.target = measured.target;
  finish_plan(plan, request, options.timeline, measured.choices.get(), launch.cores_here);
  return {};
}

int measure_for_plan(const RunSpec& spec, const LaunchFlags& launch, bool json, const Situation& situation) {
  RankCommand command = rank_command("plan", Value<RunSpec>::write(spec), spec.cluster, launch);
  command.requested_ranks.reset();  // fewer ranks measure if not all can compute at the same time
  command.ends_start_itself = true;
  return run_as_rank(situation, json, command, [&](RankContext& context) {
    const int ranks = requested_ranks(spec.cluster, launch.ranks).value_or(context.world.size());
    bool at_hand = true;
    RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
    const DataInfo data = known_data(spec, spec.train.global_batch(ranks), at_hand);
    const std::int64_t memory = memory_of_every_rank(spec.cluster, device, context.world);
    context.end_start();
    measure_together(request_for_this_machine(spec, data, ranks, *device.backend, memory), device, context);
    return 0;
  });
}

}  // namespace trainctl
