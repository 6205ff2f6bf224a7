// Builds the runs that a plan compares, and predicts the alternatives.
#include "run/planning/planned_runs.h"

#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/report.h"
#include "parallel/strategies/op_cost.h"
#include "parallel/strategies/tensor/gather_again.h"
#include "parallel/trainer/batch_sizes.h"
#include "parallel/trainer/recompute_choice.h"
#include "run/job/job.h"

namespace trainctl {
namespace {

BatchSizes sizes_of(const PlanRequest& request) {
  return batch_sizes(request.spec.model, request.spec.train, request.spec.strategy, request.data, request.ranks);
}

PlannedRun run_with(const PlanRequest& request, const BatchSizes& sizes, PlannedRanks ranks) {
  const Strategy strategy = strategy_for(request.spec, request.data, request.ranks, request.device);
  return plan_run(program_spec(request.spec, request.data), strategy, sizes, ranks);
}

// Whether ranks divide the positions of sequences in any layer.
bool divides_positions(const PlannedRun& run) {
  for (const RunPrograms& rank : run.ranks) {
    for (const Program& program : rank.programs()) {
      for (const Segment& segment : program.segments) {
        if (std::ranges::any_of(segment.ops, gathers_positions)) return true;
      }
    }
  }
  return false;
}

}  // namespace

void require_layers_within_nodes(const StrategyOptions& strategy, int ranks, int ranks_per_node) {
  if (strategy.tensor.value == 1) return;
  std::vector<std::string> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(format("node {}", rank / ranks_per_node));
  require_layers_within_hosts(strategy, mesh_of(strategy, ranks), nodes);
}

PlannedRun configured_run(const PlanRequest& request) { return run_with(request, sizes_of(request), request.planned); }

std::optional<PlannedRun> find_step(const PlanRequest& request) {
  try {
    const BatchSizes all = sizes_of(request);
    const BatchSizes full{.training = all.training,
                          .gradient_accumulation = all.gradient_accumulation,
                          .speeds = all.speeds,
                          .shards = all.shards,
                          .whole_batch = all.whole_batch};
    return run_with(request, full, PlannedRanks::stages);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    log::debug(format("no alternative: {}", error.what()));
    return {};
  }
}

void for_alternatives(const PlanRequest& request,
                      const std::function<void(const PlanRequest& alternative, PlannedRun run)>& body) {
  PlanRequest other = request;
  std::set<int> undivided;  // values of `tensor` with which sequence_parallel has no effect
  for (const StrategyOptions& options : alternatives(request.spec.strategy, request.ranks, request.ranks_per_node)) {
    const bool adds_division = options.sequence_parallel && !request.spec.strategy.sequence_parallel;
    if (adds_division && undivided.contains(options.tensor.value)) continue;
    other.spec.strategy = options;
    std::optional<PlannedRun> run = find_step(other);
    if (!run) continue;
    if (adds_division && !divides_positions(*run)) {
      undivided.insert(options.tensor.value);
    } else {
      body(other, *std::move(run));
    }
  }
}

PlannedRun with_recomputed_blocks(const PlanRequest& request, PlannedRun run, const RankCompiler& compile) {
  if (request.spec.strategy.recompute != Recompute::automatic) return run;
  const ProgramSpec spec = program_spec(request.spec, request.data);
  const BatchDivision anyone = run.sizes.training_division(MeshRank(run.strategy.mesh, 0));
  Strategy strategy = run.strategy;
  strategy.recomputed =
      choose_recomputed(spec, strategy, run.sizes, request.memory, byte_costs(request.device.on_host),
                        [&](const std::vector<Program>& programs) { return compile(programs, anyone).memory.total(); });
  if (strategy.recomputed.empty()) return run;
  return plan_run(spec, strategy, run.sizes, run.others().empty() ? PlannedRanks::stages : PlannedRanks::own_programs);
}

std::vector<Alternative> predict_alternatives(const PlanRequest& request, const PlanTarget& target,
                                              int largest_factor) {
  const auto predicted = [&](const PlanRequest& other, const PlannedRun& run) -> Alternative {
    const Prediction prediction = predict(with_recomputed_blocks(other, run, target.compile), target);
    return {other.spec.strategy,        prediction.mesh(),
            prediction.micro_batches(), other.spec.train.gradient_accumulation,
            prediction.memory(),        prediction.fits(target),
            prediction.step.seconds,    prediction.samples_per_second()};
  };
  std::vector<Alternative> found;
  for_alternatives(request, [&](PlanRequest other, std::optional<PlannedRun> run) {
    found.push_back(predicted(other, *run));
    if (found.back().fits) return;
    if (largest_factor > 1 && other.spec.strategy.recompute == Recompute::none) {
      PlanRequest saving = other;
      saving.spec.strategy.recompute = Recompute::automatic;
      if (const std::optional<PlannedRun> step = find_step(saving)) {
        const Alternative alternative = predicted(saving, *step);
        if (alternative.fits) found.push_back(alternative);
      }
    }
    if (found.back().mesh.pipeline > 1) return;
    for (int factor = 2; factor <= largest_factor; factor *= 2) {
      other.spec.train.gradient_accumulation *= 2;
      run = find_step(other);
      if (!run) return;
      found.push_back(predicted(other, *run));
      if (found.back().fits) return;
    }
  });
  return found;
}

}  // namespace trainctl
