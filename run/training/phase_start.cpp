// Plans a phase of a run and fills its weights.
#include "run/training/phase_start.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "io/loader/data.h"
#include "io/loader/inputs/kept_input.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/checkpoint/staged_saver.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/phases.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/planning/shares.h"
#include "run/run_spec.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"
#include "run/training/run_metadata.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

// The number of hosts of a run.
int hosts_of(const RankRun& run) {
  const std::vector<std::string>& of_ranks = run.context.world.hosts();
  return static_cast<int>(std::set<std::string>(of_ranks.begin(), of_ranks.end()).size());
}

}  // namespace

TrainingPlan plan_of(const RankRun& run, const RunSpec& spec, const Job& job, const PhaseStart& phase) {
  const int ranks = run.context.world.size();
  TrainingPlan plan = training_plan(spec.train, spec.strategy,
                                    {.checkpoint_every = spec.checkpoint.every,
                                     .time_between_failures = spec.cluster.time_between_failures(hosts_of(run)),
                                     .log_every = spec.log.every,
                                     .monitor = spec.checkpoint.monitor,
                                     .mode = spec.checkpoint.mode,
                                     .memory_every = spec.checkpoint.memory_every,
                                     .histograms = spec.log.histograms,
                                     .gradient_norms = spec.log.gradient_norms,
                                     .given_modes = spec.train.given_modes(output_names(spec.model))},
                                    run.data.info(), ranks, phase);
  plan.loop.phases = phase_count(run.spec);
  const std::string shares = run.configured.strategy.shares_by_measuring() ? text_of_shares(spec.strategy) : "";
  plan.metadata =
      run_metadata(job, run.data.info(), ranks, *spec.train.batch_size, plan.loop.total_steps - phase.step, shares);
  plan.metadata[kept_input_key] = write_kept_inputs(run.data.kept_inputs());
  if (const std::vector<KeptInput>& targets = run.data.kept_targets(); !targets.empty()) {
    plan.metadata[kept_target_key] = write_kept_inputs(targets);
  }
  return plan;
}

void fill_engine(const RunSpec& spec, Job& job, const SnapshotPlan& plan, const RunFiles& files, bool resumed,
                 bool keeps_state, const std::string& config_file) {
  Engine& engine = job.engine();
  engine.download();
  initialize_weights(job.program_spec(), spec.seed, engine.weights());
  RestoreSource source;
  if (files.checkpoint) source = {&files.checkpoint->snapshot, files.checkpoint->path, config_file};
  if (files.pretrained) source = {&files.pretrained->snapshot, files.pretrained->path, config_file};
  Communicator& world = job.world().communicator();
  if (resumed || spec.model.weights) restore_weights(source, plan.weights, engine.weights(), world, job.host_stream());
  engine.begin_at_weights();
  if (keeps_state) restore_state(source, plan.state, engine.state(), world, job.host_stream());
  engine.upload();
}

std::int64_t staged_bytes(const SnapshotPlan& plan, int rank, const CheckpointOptions& options) {
  const std::int64_t state = options.weights_only ? 0 : plan.state.bytes_of(rank);
  return options.background_savers() * StagedSaver::copies * (plan.weights.bytes_of(rank) + state);
}

void restore_best(RankRun& run, Job& job, std::int64_t missing) {
  if (missing >= 0) {
    if (run.files.sink) {
      log::warning(
          format("the weights stay those of the last step: the run's directory has no checkpoint of the best result, "
                 "of step {}, so that restore_best cannot restore it",
                 missing));
    }
    return;
  }
  std::optional<LoadedCheckpoint> best;
  if (run.files.directory) best = load_named_checkpoint(run.files.directory->path() + "/checkpoints/best");
  RestoreSource source;
  if (best) source = {&best->snapshot, best->path, run.request.config_file};
  restore_weights(source, job.engine(), job.world().communicator(), job.host_stream());
}

}  // namespace trainctl
