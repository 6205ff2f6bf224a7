// Makes the hooks of a phase.
#include "run/training/phase_hooks.h"

#include <unistd.h>

#include <utility>

#include "io/loader/data.h"
#include "parallel/health/faults/spoiled_batches.h"
#include "parallel/health/stragglers.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/situation.h"
#include "parallel/trainer/hooks/fault_rehearsal.h"
#include "parallel/trainer/hooks/result_warnings.h"
#include "parallel/trainer/hooks/run_hooks.h"
#include "parallel/trainer/loop/step_reports.h"
#include "parallel/trainer/sample_watch.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"
#include "run/training/run_metadata.h"
#include "run/training/training.h"

namespace trainctl {

PhaseHooks::PhaseHooks(Parts parts) {
  RankRun& run = parts.run;
  const Job& job = parts.job;
  World& world = run.context.world;
  Communicator& ranks = world.communicator();
  if (parts.validation != nullptr && shows_samples(parts.spec, run.data.info())) {
    samples_ = std::make_unique<SampleWatch>(*parts.validation, evaluation_division(job.division()),
                                             run.data.info().inputs[0], *parts.spec.log.samples, run.files.details);
  }
  if (ranks.size() > 1) {
    std::vector<int> stages;
    const Mesh& mesh = job.rank().mesh;
    for (int rank = 0; rank < ranks.size(); ++rank) stages.push_back(mesh.position(rank).along(MeshAxis::pipeline));
    stragglers_ = std::make_unique<StragglerWatch>(ranks, run.device.host, world.hosts(), std::move(stages));
  }
  reports_ =
      std::make_unique<StepReports>(run.files.sink.get(), run.gpus.get(), parts.plan.log_every, stragglers_.get());
  warnings_ = std::make_unique<ResultWarnings>(ranks.rank() == 0, job.programs().programs().front().results);
  make_hooks(parts);
  const bool is_run = run.request.scaling == nullptr && run.request.replay == nullptr;
  if (!parts.spec.faults.empty() && is_run) rehearse_faults(parts);
}

PhaseHooks::~PhaseHooks() = default;

void PhaseHooks::make_hooks(const Parts& parts) {
  RankRun& run = parts.run;
  hooks_ = run_hooks(parts.plan, {.engine = parts.job.engine(),
                                  .programs = parts.job.programs(),
                                  .weights = parts.snapshots.weights,
                                  .world = run.context.world.communicator(),
                                  .replicas = parts.replicas,
                                  .stream = run.device.host,
                                  .hosts = run.context.world.hosts(),
                                  .details = run.files.details,
                                  .sink = run.files.sink.get(),
                                  .warnings = *warnings_,
                                  .reports = *reports_,
                                  .restore_best = parts.restore_best});
}

// Adds the hook that makes the faults of the config happen.
void PhaseHooks::rehearse_faults(const Parts& parts) {
  RankRun& run = parts.run;
  spoiled_ = std::make_unique<SpoiledBatches>(parts.training);
  const StartedBy launcher = run.context.situation.started_by;
  const bool of_launcher = launcher == StartedBy::mpirun || launcher == StartedBy::srun;
  hooks_.insert(hooks_.begin(),
                std::make_unique<FaultRehearsal>(  // before the comparison of replicas
                    FaultRehearsal::Parts{.faults = parts.spec.faults,
                                          .engine = parts.job.engine(),
                                          .batches = *spoiled_,
                                          .world = run.context.world.communicator(),
                                          .stream = run.device.host,
                                          .hosts = run.context.world.hosts(),
                                          .mesh = parts.job.rank().mesh,
                                          .launcher = of_launcher ? getppid() : 0,
                                          .steps = steps_of_run(run.spec.train, parts.plan.loop.steps_per_epoch),
                                          .run_directory = run.files.directory ? run.files.directory->path() : "",
                                          .wait_for_checkpoints = parts.wait_for_checkpoints,
                                          .waited = [this](double seconds) { reports_->add_computing(seconds); }}));
}

std::vector<TrainingHook*> PhaseHooks::hooks() const {
  std::vector<TrainingHook*> all;
  for (const auto& hook : hooks_) all.push_back(hook.get());
  all.push_back(warnings_.get());  // after the hooks that add values
  return all;
}

BatchSource* PhaseHooks::spoiled() const { return spoiled_.get(); }

}  // namespace trainctl
