// Creates the hooks of a run.
#include "parallel/trainer/hooks/run_hooks.h"

#include "core/exec/engine.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/hooks/early_stopping.h"
#include "parallel/trainer/hooks/gradient_norms.h"
#include "parallel/trainer/hooks/histogram_pass.h"
#include "parallel/trainer/hooks/local_steps.h"
#include "parallel/trainer/hooks/plateau.h"
#include "parallel/trainer/hooks/regularization.h"
#include "parallel/trainer/hooks/replica_comparison.h"
#include "parallel/trainer/hooks/scale_hint.h"
#include "parallel/trainer/training_plan.h"

namespace trainctl {

std::vector<std::unique_ptr<TrainingHook>> run_hooks(const TrainingPlan& plan, const HookContext& context) {
  std::vector<std::unique_ptr<TrainingHook>> hooks;
  const bool logs = context.world.rank() == 0;
  const Program& program = context.programs.programs().front();
  if (context.replicas != nullptr && context.replicas->size() > 1) {
    hooks.push_back(
        std::make_unique<ReplicaComparison>(plan.verify_every, plan.on_corruption,
                                            ReplicaComparison::Parts{context.engine, *context.replicas, context.world,
                                                                     context.stream, context.sink, context.hosts}));
    if (plan.sync_every > 1) {
      const Averaging averaging{plan.sync_every, plan.loop.steps_per_epoch, plan.loop.total_steps};
      hooks.push_back(
          std::make_unique<LocalSteps>(averaging, context.engine, *context.replicas, context.stream, &context.reports));
    }
  }
  if (plan.histograms_every > 0) {
    hooks.push_back(std::make_unique<HistogramPass>(plan.histograms_every, context.engine, context.weights,
                                                    context.world, context.stream, context.details));
  }
  if (plan.gradient_norms_every > 0) {
    hooks.push_back(std::make_unique<GradientNorms>(plan.gradient_norms_every, context.engine, context.world,
                                                    context.stream, context.sink));
  }
  hooks.push_back(std::make_unique<RegularizationLoss>(context.engine, context.engine.program(0).program,
                                                       context.programs.rank(), context.world, context.stream));
  if (plan.reduce_on_plateau) {
    hooks.push_back(std::make_unique<Plateau>(*plan.reduce_on_plateau, &context.warnings, logs));
  }
  if (plan.early_stopping) {
    hooks.push_back(std::make_unique<EarlyStopping>(
        *plan.early_stopping,
        EarlyStopping::Actions{.warnings = &context.warnings, .logs = logs, .restore_best = context.restore_best}));
  }
  if (logs) hooks.push_back(std::make_unique<ScaleHint>(program, plan.sync_every));
  return hooks;
}

}  // namespace trainctl
