// Builds and trains a phase.
#include "run/training/phase_training.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/observe/op_recorder.h"
#include "core/spec/units.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/store.h"
#include "io/loader/data.h"
#include "io/loader/inputs/kept_input.h"
#include "parallel/bench/timeline.h"
#include "parallel/checkpoint/gathered_hash.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/health/stragglers.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/situation.h"
#include "parallel/mesh/axes.h"
#include "parallel/trainer/evaluate.h"
#include "parallel/trainer/hooks/result_warnings.h"
#include "parallel/trainer/hooks/run_hooks.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/loop.h"
#include "parallel/trainer/loop/step_reports.h"
#include "parallel/trainer/resume.h"
#include "parallel/trainer/sample_watch.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/planning/shares.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"
#include "run/training/run_metadata.h"
#include "run/training/scaling_watch.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

// Fills the weights on all ranks: from the checkpoint or `model.weights`, which rank 0 has, or with initial values,
// which every rank computes itself. The optimizer's state comes from the checkpoint if `keeps_state`; otherwise it is
// initial.
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

// Restores the weights of the run's best checkpoint. Collective.
void restore_best(Job& job, const RunFiles& files, const std::string& config_file) {
  std::optional<LoadedCheckpoint> best;
  if (files.directory) best = load_named_checkpoint(files.directory->path() + "/checkpoints/best");
  RestoreSource source;
  if (best) source = {&best->snapshot, best->path, config_file};
  restore_weights(source, job.engine(), job.world().communicator(), job.host_stream());
}

// The host memory of this rank's copies for checkpoints.
std::int64_t staged_bytes(const SnapshotPlan& plan, int rank, bool weights_only) {
  const std::int64_t state = weights_only ? 0 : plan.state.bytes_of(rank);
  return StagedSaver::copies * (plan.weights.bytes_of(rank) + state);
}

// Records how a run failed. An error of writing is only logged: the user must see the first error.
void record_failure(MetricsSink& sink, const Error& error, const TrainingLoop& loop) {
  EndEvent end;
  end.status = error.kind() == ErrorKind::diverged ? "diverged" : "failed";
  end.step = loop.step();
  end.epoch = loop.epoch();
  try {
    sink.end(end);
  } catch (const Error& second) {
    log::debug(second.what());
  }
}

// Returns the function that tells this run's supervisor how long a stop may take. Null without a supervisor, and on
// other ranks than 0.
std::function<void(double longest, bool saves)> teller_of_stop_time(const Situation& situation, int rank) {
  if (!situation.supervised || rank != 0) return nullptr;
  return [&situation](double longest, bool saves) { write_stop_time(situation.status_file, {longest, saves}); };
}

TrainingPlan plan_of(const RankRun& run, const RunSpec& spec, const Job& job, const PhaseStart& phase) {
  const int ranks = run.context.world.size();
  TrainingPlan plan = training_plan(spec.train, spec.strategy,
                                    {.checkpoint_every = spec.checkpoint.every,
                                     .log_every = spec.log.every,
                                     .monitor = spec.checkpoint.monitor,
                                     .mode = spec.checkpoint.mode,
                                     .histograms = spec.log.histograms,
                                     .gradient_norms = spec.log.gradient_norms,
                                     .given_modes = spec.train.given_modes(output_names(spec.model))},
                                    run.data.info(), ranks, phase);
  plan.loop.phases = phase_count(run.spec);
  const std::string shares = run.configured.strategy.shares_by_measuring() ? text_of_shares(spec.strategy) : "";
  plan.metadata =
      run_metadata(job, run.data.info(), ranks, *spec.train.batch_size, plan.loop.total_steps - phase.step, shares);
  plan.metadata[kept_input_key] = write_kept_inputs(run.data.kept_inputs());
  return plan;
}

class PhaseTraining {
 public:
  // The parameters are those of train_phase(); `run` and `resumed` must outlive the object.
  PhaseTraining(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins);

  PhaseEnd train();

 private:
  void open_batches(const DataPosition& start);
  void make_hooks();
  LoopContext loop_parts();
  std::optional<Evaluation> evaluate_validation(std::int64_t step);
  void write_observations();

  RankRun& run_;
  Communicator& world_;
  Stream& stream_;
  RunSpec spec_;  // config of the phase
  PhaseStart phase_;
  Job job_;
  SnapshotPlan snapshots_;
  TrainingPlan plan_;
  std::function<bool()> stop_requested_;
  std::unique_ptr<BatchSource> training_;
  std::unique_ptr<BatchSource> validation_;  // null: there is none
  MeshAxes axes_;
  FolderSink folder_;
  OpRecorder profiler_;
  std::unique_ptr<StagedSaver> saver_;
  std::unique_ptr<SampleWatch> samples_;   // null: no samples are shown
  std::unique_ptr<ScalingWatch> scaling_;  // null: not a run of verify-scaling
  std::unique_ptr<ResultWarnings> warnings_;
  std::vector<std::unique_ptr<TrainingHook>> hooks_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<StragglerWatch> stragglers_;  // null: there is one rank
  std::unique_ptr<StepReports> reports_;
  FiniteCheck finite_;
  std::unique_ptr<TrainingLoop> loop_;
};

PhaseTraining::PhaseTraining(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins)
    : run_(run),
      world_(run.context.world.communicator()),
      stream_(run.device.host),
      spec_(in_phase(run.spec, phase.number)),
      phase_(phase),
      job_(spec_, run.data.info(), run.device, run.context.world, start_of(run, resumed),
           metadata_value(resumed, "kernel_choices")),
      snapshots_(plan_snapshot(job_.engine().weights(), job_.engine().state(), world_, stream_)),
      plan_(plan_of(run, spec_, job_, phase)),
      axes_(world_, job_.rank().mesh, false),
      finite_(spec_.train.precision == Precision::float16) {
  RunFiles& files = run.files;
  const bool keeps_state = resumed.has_value() && (phase.number == 0 || resumed->step > phase.step);
  fill_engine(run.spec, job_, snapshots_, files, resumed.has_value(), keeps_state, run.request.config_file);
  files.checkpoint.reset();  // their memory is no longer needed
  files.pretrained.reset();
  open_batches(start_of(run, resumed));
  MemoryPlan memory = job_.engine().memory();  // `check` prints the memory of the rank with the most
  memory.prefetched = training_->batch_bytes() + (validation_ ? validation_->batch_bytes() : 0);
  if (spec_.checkpoint.background)
    memory.staged = staged_bytes(snapshots_, world_.rank(), spec_.checkpoint.weights_only);
  if (begins) begin_run(run, job_, spec_.train, plan_, memory, resumed);
  double& left = plan_.loop.max_seconds;
  if (left > 0) left = std::max(left - (seconds_now() - run.begin), 1e-3);
  for (const MemoryLine& line : memory.lines()) log::debug(format("memory: {} {} bytes", line.name, line.bytes));
  const std::string text = phase_text(run.spec, phase.number);
  if (world_.rank() == 0 && !text.empty()) log::info(text);

  saver_ = std::make_unique<StagedSaver>(
      job_.engine(), snapshots_,
      SnapshotOutlet{run.shares_directory ? &folder_ : nullptr, files.store.get(), spec_.checkpoint.weights_only},
      spec_.checkpoint.background, world_, stream_);
  if (run.request.scaling != nullptr) {
    scaling_ = std::make_unique<ScalingWatch>(*run.request.scaling, job_, run.device, snapshots_, *training_);
    scaling_->shorten(plan_);
  }
  make_hooks();
  loop_ = std::make_unique<TrainingLoop>(loop_parts(), plan_.loop);
  if (resumed) loop_->resume(*resumed, !begins || !names_a_checkpoint(run.request.resume));
}

void PhaseTraining::open_batches(const DataPosition& start) {
  if (!run_.stop) run_.stop.emplace();
  stop_requested_ = [this] { return run_.stop->pending(); };
  const std::int64_t batch = *spec_.train.batch_size;
  const int threads = run_.context.threads;
  const auto flight = [this] { return world_.attendance().flight(); };
  // With sync_every, a replica finishes its steps up to the next average, at which all ranks learn of a stop.
  training_ = run_.data.training(batch, job_.division(), start, threads, job_.target_encodings(), job_.batch_memory(),
                                 plan_.sync_every == 1 ? stop_requested_ : nullptr, flight);
  if (!run_.data.has(SplitKind::validation) || run_.request.scaling != nullptr) return;
  validation_ = run_.data.evaluation(SplitKind::validation, evaluation_batch(batch, job_.division()),
                                     evaluation_division(job_.division()), threads, job_.target_encodings(),
                                     job_.batch_memory(), stop_requested_, flight);
}

// Called after begin_run(), which opens the files that the hooks write to.
void PhaseTraining::make_hooks() {
  if (validation_ && shows_samples(spec_, run_.data.info())) {
    samples_ = std::make_unique<SampleWatch>(*validation_, evaluation_division(job_.division()),
                                             run_.data.info().inputs[0], *spec_.log.samples, run_.files.details);
  }
  if (world_.size() > 1) {
    std::vector<int> stages;
    const Mesh& mesh = job_.rank().mesh;
    for (int rank = 0; rank < world_.size(); ++rank) stages.push_back(mesh.position(rank).along(MeshAxis::pipeline));
    stragglers_ = std::make_unique<StragglerWatch>(world_, stream_, run_.context.world.hosts(), std::move(stages));
  }
  reports_ = std::make_unique<StepReports>(run_.files.sink.get(), run_.gpus.get(), plan_.log_every, stragglers_.get());
  warnings_ = std::make_unique<ResultWarnings>(world_.rank() == 0, job_.programs().programs().front().results);
  hooks_ = run_hooks(plan_, {.engine = job_.engine(),
                             .programs = job_.programs(),
                             .weights = snapshots_.weights,
                             .world = world_,
                             .replicas = axes_.communicators().find(MeshAxis::data),
                             .stream = stream_,
                             .details = run_.files.details,
                             .sink = run_.files.sink.get(),
                             .warnings = *warnings_,
                             .reports = *reports_,
                             .restore_best = [this] {
                               checkpoints_->wait();
                               restore_best(job_, run_.files, run_.request.config_file);
                             }});
}

LoopContext PhaseTraining::loop_parts() {
  MetricsSink* const sink = run_.files.sink.get();
  const TrainingRequest& request = run_.request;
  const int rank = world_.rank();
  checkpoints_ = std::make_unique<Checkpoints>(
      Checkpoints::Parts{.saver = *saver_,
                         .sink = sink,
                         .mesh = plan_.mesh,
                         .metadata = plan_.metadata,
                         .tell_stop_time = teller_of_stop_time(run_.context.situation, rank)});
  LoopContext parts{
      .engine = job_.engine(),
      .training = scaling_ ? static_cast<BatchSource&>(*scaling_) : *training_,
      .program_of = [this](std::int64_t samples) { return job_.programs().training(samples); },
      .results = job_.programs().programs().front().results,
      .world = world_,
      .stream = stream_,
      .checkpoints = *checkpoints_,
      .reports = *reports_,
      .finite = finite_,
      .sink = sink,
      .find_not_finite =
          [this](int program, int back) {
            return find_not_finite(job_.engine(), program, back, job_.programs().rank(), world_, stream_);
          },
      .weights_sha256 =
          [this] {
            job_.engine().download();
            return gathered_sha256(snapshots_.weights, job_.engine().weights(), world_, stream_);
          },
      .stop_requested = stop_requested_,
      .profiled = {request.profile_end > 0 ? &profiler_ : nullptr, request.profile_first, request.profile_end}};
  if (validation_) parts.evaluate = [this](std::int64_t step) { return evaluate_validation(step); };
  for (const auto& hook : hooks_) parts.hooks.push_back(hook.get());
  parts.hooks.push_back(warnings_.get());  // after the hooks that add values
  if (scaling_) parts.hooks.push_back(scaling_.get());
  return parts;
}

std::optional<Evaluation> PhaseTraining::evaluate_validation(std::int64_t step) {
  std::optional<Evaluation> found =
      evaluate(job_.engine(), job_.programs(), *validation_, world_, stream_, stop_requested_, samples_.get());
  if (!found) return found;
  if (samples_) samples_->finish(step, world_, stream_);
  warnings_->weightless_validation(found->weight);
  return found;
}

PhaseEnd PhaseTraining::train() {
  try {
    PhaseEnd end{loop_->run()};
    write_observations();
    const ScalingRequest* const scaling = run_.request.scaling;
    const std::optional<std::int64_t>& max_steps = spec_.train.max_steps;
    const bool is_cut =
        (max_steps && loop_->step() >= *max_steps) || (scaling != nullptr && loop_->step() >= scaling->steps);
    end.next_follows = loop_->ended_phase() && phase_.number + 1 < plan_.loop.phases && !is_cut;
    return end;
  } catch (const Error& error) {
    run_.context.step = loop_->step();
    if (run_.files.sink) record_failure(*run_.files.sink, error, *loop_);
    throw;
  }
}

// Writes the trace of a run of verify-scaling, and the timeline of profiled steps.
void PhaseTraining::write_observations() {
  const std::string directory = run_.files.directory ? run_.files.directory->path() : "";
  if (scaling_) scaling_->save_trace(directory, run_.shares_directory ? &folder_ : nullptr);
  if (run_.request.profile_end == 0 || run_.request.profile_first < phase_.step) return;
  const std::string timeline = gather_timeline(profiler_, world_, stream_);
  if (!directory.empty()) write_file(directory + "/timeline.json", timeline);
}

}  // namespace

PhaseEnd train_phase(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins) {
  return PhaseTraining(run, phase, resumed, begins).train();
}

}  // namespace trainctl
