// Runs under several strategies.
#include "cmd/planned_runs.h"

#include "cmd/job.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/plan/alternatives.h"
#include "parallel/trainer/batch_sizes.h"

namespace trainctl {
namespace {

BatchSizes sizes_of(const PlanRequest& request) {
  return batch_sizes(request.spec.train, request.spec.strategy, request.data, request.ranks);
}

PlannedRun run_with(const PlanRequest& request, const BatchSizes& sizes, PlannedRanks ranks) {
  const Strategy strategy = strategy_for(request.spec, request.data, request.ranks, request.device);
  return plan_run(program_spec(request.spec, request.data), strategy, sizes, ranks);
}

}  // namespace

PlannedRun stated_run(const PlanRequest& request) { return run_with(request, sizes_of(request), request.planned); }

std::optional<PlannedRun> find_step(const PlanRequest& request) {
  try {
    const BatchSizes all = sizes_of(request);
    const BatchSizes full{.training = all.training,
                          .gradient_accumulation = all.gradient_accumulation,
                          .speeds = all.speeds,
                          .shards = all.shards};
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
  for (const StrategyOptions& options : alternatives(request.spec.strategy, request.ranks, request.ranks_per_node)) {
    other.spec.strategy = options;
    if (std::optional<PlannedRun> run = find_step(other)) body(other, *std::move(run));
  }
}

std::vector<Alternative> predict_alternatives(const PlanRequest& request, const PlanTarget& target, int most_parts) {
  std::vector<Alternative> found;
  for_alternatives(request, [&](PlanRequest other, std::optional<PlannedRun> run) {
    for (int parts = 1; run; parts *= 2) {
      const Prediction prediction = predict(*run, target);
      found.push_back({other.spec.strategy, prediction.mesh(), prediction.micro_batches(),
                       other.spec.train.gradient_accumulation, prediction.memory(), prediction.fits(target),
                       prediction.step.seconds, prediction.samples_per_second()});
      if (found.back().fits || prediction.mesh().pipeline > 1 || 2 * parts > most_parts) break;
      other.spec.train.gradient_accumulation *= 2;
      run = find_step(other);
    }
  });
  return found;
}

}  // namespace trainctl
