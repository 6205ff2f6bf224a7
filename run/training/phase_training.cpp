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
#include "io/loader/data.h"
#include "parallel/bench/timeline.h"
#include "parallel/checkpoint/gathered_hash.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/situation.h"
#include "parallel/mesh/axes.h"
#include "parallel/trainer/evaluate.h"
#include "parallel/trainer/hooks/result_warnings.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/loop.h"
#include "parallel/trainer/resume.h"
#include "parallel/trainer/sample_watch.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/training/kept_step.h"
#include "run/training/phase_hooks.h"
#include "run/training/phase_savers.h"
#include "run/training/phase_start.h"
#include "run/training/rank_run.h"
#include "run/training/replay_watch.h"
#include "run/training/run_files.h"
#include "run/training/scaling_watch.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

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

// Returns the function that tells this run's supervisor how long a stop may take and whether it can be saved. Null
// without a supervisor, and on other ranks than 0.
std::function<void(double longest, bool saves, bool fails)> teller_of_stop_time(const Situation& situation, int rank) {
  if (!situation.supervised || rank != 0) return nullptr;
  return [&situation](double longest, bool saves, bool fails) {
    write_stop_time(situation.status_file, {longest, saves, fails});
  };
}

class PhaseTraining {
 public:
  // The parameters are those of train_phase(); `run` and `resumed` must outlive the object.
  PhaseTraining(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins);

  PhaseEnd train();

 private:
  void open_batches(const DataPosition& start);
  void find_missing_best(std::int64_t step);
  LoopContext loop_parts();
  std::string search(int program, int back);
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
  OpRecorder profiler_;
  PhaseSavers savers_;
  std::unique_ptr<ScalingWatch> scaling_;  // null: not a run of verify-scaling
  std::unique_ptr<ReplayWatch> replay_;    // null: not a run of replay
  std::unique_ptr<PhaseHooks> hooks_;
  std::unique_ptr<Checkpoints> checkpoints_;
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
      savers_(run, job_, snapshots_, spec_.checkpoint),
      finite_(spec_.train.precision == Precision::float16, {spec_.train.on_not_finite.value, spec_.train.max_skipped}) {
  RunFiles& files = run.files;
  const bool keeps_state = resumed.has_value() && (phase.number == 0 || resumed->step > phase.step);
  fill_engine(run.spec, job_, snapshots_, files, resumed.has_value(), keeps_state, run.request.config_file);
  files.checkpoint.reset();  // their memory is no longer needed
  files.pretrained.reset();
  open_batches(start_of(run, resumed));
  MemoryPlan memory = job_.engine().memory();  // `check` prints the memory of the rank with the most
  memory.prefetched = training_->batch_bytes() + (validation_ ? validation_->batch_bytes() : 0);
  memory.staged = savers_.staged_bytes();
  if (begins) begin_run(run, job_, spec_.train, plan_, memory, resumed);
  if (begins) savers_.open_copies();
  double& left = plan_.loop.max_seconds;
  if (left > 0) left = std::max(left - (seconds_now() - run.begin), 1e-3);
  for (const MemoryLine& line : memory.lines()) log::debug(format("memory: {} {} bytes", line.name, line.bytes));
  const std::string text = phase_text(run.spec, phase.number);
  if (world_.rank() == 0 && !text.empty()) log::info(text);

  savers_.start();
  if (run.request.scaling != nullptr) {
    scaling_ = std::make_unique<ScalingWatch>(*run.request.scaling, job_, run.device, snapshots_, *training_);
    scaling_->shorten(plan_);
  }
  if (run.request.replay != nullptr) {
    replay_ = std::make_unique<ReplayWatch>(*run.request.replay, job_, run.device, snapshots_, *training_);
    replay_->shorten(plan_);
    finite_.examine(run.request.replay->step - 1);
  }
  hooks_ =
      std::make_unique<PhaseHooks>(PhaseHooks::Parts{.run = run,
                                                     .spec = spec_,
                                                     .job = job_,
                                                     .snapshots = snapshots_,
                                                     .plan = plan_,
                                                     .replicas = axes_.communicators().find(MeshAxis::data),
                                                     .training = *training_,
                                                     .validation = validation_.get(),
                                                     .restore_best =
                                                         [this] {
                                                           checkpoints_->wait();
                                                           restore_best(run_, job_, checkpoints_->missing_best_step());
                                                         },
                                                     .wait_for_checkpoints = [this] { checkpoints_->wait(); }});
  loop_ = std::make_unique<TrainingLoop>(loop_parts(), plan_.loop);
  const bool is_stored =
      !begins || (!names_a_checkpoint(run.request.resume) && !any_rank(files.resumes_from_memory, world_, stream_));
  if (!resumed) return;
  const Snapshot start = without_results_of_other_data(*resumed, plan_);
  loop_->resume(start, is_stored);
  if (start.best) find_missing_best(start.best->step);
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

// The checkpoint of the best result is missing if it was left out while the disk was full, or if the run goes on from a
// checkpoint in another directory.
void PhaseTraining::find_missing_best(std::int64_t step) {
  const bool is_missing = run_.files.store && !run_.files.store->has(step);
  if (any_rank(is_missing, world_, stream_)) checkpoints_->set_missing_best_step(step);
}

LoopContext PhaseTraining::loop_parts() {
  MetricsSink* const sink = run_.files.sink.get();
  const TrainingRequest& request = run_.request;
  const int rank = world_.rank();
  checkpoints_ = std::make_unique<Checkpoints>(
      Checkpoints::Parts{.saver = savers_.of_checkpoints(),
                         .memory = savers_.of_memory(),
                         .peer = savers_.of_peer(),
                         .peer_host = savers_.peer_host(),
                         .sink = sink,
                         .mesh = plan_.mesh,
                         .metadata = plan_.metadata,
                         .newest = run_.files.newest_stored,
                         .tell_stop_time = teller_of_stop_time(run_.context.situation, rank)});
  BatchSource& source = scaling_            ? static_cast<BatchSource&>(*scaling_)
                        : replay_           ? static_cast<BatchSource&>(*replay_)
                        : hooks_->spoiled() ? *hooks_->spoiled()
                                            : *training_;
  LoopContext parts{
      .engine = job_.engine(),
      .training = source,
      .program_of = [this](std::int64_t samples) { return job_.programs().training(samples); },
      .results = job_.programs().programs().front().results,
      .world = world_,
      .stream = stream_,
      .checkpoints = *checkpoints_,
      .reports = hooks_->reports(),
      .finite = finite_,
      .sink = sink,
      .find_not_finite = [this](int program, int back) { return search(program, back); },
      .values_are_finite = [this] { return values_are_finite(job_.engine(), world_, stream_); },
      .weights_sha256 =
          [this] {
            job_.engine().download();
            return gathered_sha256(snapshots_.weights, job_.engine().weights(), world_, stream_);
          },
      .stop_requested = stop_requested_,
      .profiled = {request.profile_end > 0 ? &profiler_ : nullptr, request.profile_first, request.profile_end}};
  if (validation_) parts.evaluate = [this](std::int64_t step) { return evaluate_validation(step); };
  parts.hooks = hooks_->hooks();
  if (scaling_) parts.hooks.push_back(scaling_.get());
  if (replay_) parts.hooks.push_back(replay_.get());
  if (!scaling_ && !replay_) {
    parts.keep_not_finite = [this](Snapshot snapshot, const NotFiniteStep& step) {
      snapshot.mesh = plan_.mesh;
      snapshot.metadata.insert(plan_.metadata.begin(), plan_.metadata.end());
      return keep_not_finite(run_, job_, snapshots_, std::move(snapshot), step);
    };
  }
  return parts;
}

std::string PhaseTraining::search(int program, int back) {
  const std::vector<std::int64_t> samples = replay_ ? replay_->samples() : std::vector<std::int64_t>();
  const NotFiniteTensor found =
      find_not_finite(job_.engine(), program, back, job_.programs().rank(), samples, world_, stream_);
  if (replay_) replay_->set_not_finite(found);
  return to_text(found);
}

std::optional<Evaluation> PhaseTraining::evaluate_validation(std::int64_t step) {
  std::optional<Evaluation> found =
      evaluate(job_.engine(), job_.programs(), *validation_, world_, stream_, stop_requested_, hooks_->samples());
  if (!found) return found;
  if (hooks_->samples() != nullptr) hooks_->samples()->finish(step, world_, stream_);
  hooks_->warnings().weightless_validation(found->weight);
  hooks_->warnings().zero_divisions("val_", found->values, found->remarks, step);
  return found;
}

PhaseEnd PhaseTraining::train() {
  try {
    PhaseEnd end{loop_->run()};
    end.rollback = loop_->rollback();
    if (end.rollback) return end;
    write_observations();
    if (replay_ && replay_->is_done()) {
      replay_->print();
      return end;
    }
    const ScalingRequest* const scaling = run_.request.scaling;
    const std::optional<std::int64_t>& max_steps = spec_.train.max_steps;
    const bool is_cut =
        (max_steps && loop_->step() >= *max_steps) || (scaling != nullptr && loop_->step() >= scaling->steps);
    end.next_follows = loop_->ended_phase() && phase_.number + 1 < plan_.loop.phases && !is_cut;
    return end;
  } catch (const Error& error) {
    if (replay_ && replay_->is_done() && error.kind() == ErrorKind::diverged) {
      replay_->print();
      return {};
    }
    run_.context.step = loop_->step();
    if (run_.files.sink) record_failure(*run_.files.sink, error, *loop_);
    throw;
  }
}

// Writes the trace of a run of verify-scaling, and the timeline of profiled steps.
void PhaseTraining::write_observations() {
  const std::string directory = run_.files.directory ? run_.files.directory->path() : "";
  if (scaling_) scaling_->save_trace(directory, savers_.folder());
  if (run_.request.profile_end == 0 || run_.request.profile_first < phase_.step) return;
  const std::string timeline = gather_timeline(profiler_, world_, stream_);
  if (!directory.empty()) write_file(directory + "/timeline.json", timeline);
}

}  // namespace

PhaseEnd train_phase(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins) {
  PhaseTraining training(run, phase, resumed, begins);
  run.context.end_start();
  return training.train();
}

}  // namespace trainctl
