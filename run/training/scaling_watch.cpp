// Prints the hashes and writes the trace of a run of verify-scaling.
#include "run/training/scaling_watch.h"

#include <iostream>

#include "core/base/format.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/store.h"
#include "parallel/checkpoint/gathered_hash.h"
#include "parallel/checkpoint/snapshot_saver.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/loop/training_state.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"

namespace trainctl {

ScalingWatch::ScalingWatch(const ScalingRequest& request, Job& job, RankDevice& device, const SnapshotPlan& snapshots,
                           BatchSource& batches)
    : ForwardedSource(batches),
      request_(request),
      job_(job),
      device_(device),
      snapshots_(snapshots),
      trace_(job.engine(), *device.backend, job.rank(), request.tensor) {}

void ScalingWatch::shorten(TrainingPlan& plan) {
  plan.loop.total_steps = plan.loop.total_steps == 0 ? request_.steps : std::min(plan.loop.total_steps, request_.steps);
  plan.loop.max_seconds = 0;
  plan.loop.checkpoint_every = 0;
  plan.loop.time_between_failures = 0;
  plan.loop.memory_every = 0;
  plan.early_stopping.reset();
  plan.histograms_every = plan.gradient_norms_every = 0;
  steps_ = plan.loop.total_steps;
  begun_ = plan.loop.phase.step;
  traces_ = request_.traces && (steps_ == request_.steps || plan.loop.phase.number + 1 == plan.loop.phases);
}

void ScalingWatch::on_pause(const TrainingState& state, std::int64_t) {
  Engine& engine = job_.engine();
  engine.download();
  Communicator& world = job_.world().communicator();
  const std::string weights = gathered_sha256(snapshots_.weights, engine.weights(), world, device_.host);
  const std::string optimizer = gathered_sha256(snapshots_.state, engine.state(), world, device_.host);
  if (job_.world().rank() == 0) std::cout << format("step {} {} {}\n", state.step, weights, optimizer) << std::flush;
}

const Batch& ScalingWatch::next() {
  const Batch& batch = source_.next();
  ++begun_;
  if (traces_ && begun_ == steps_) {
    trace_.set_samples(batch);
    job_.engine().set_observer(&trace_);
  }
  return batch;
}

void ScalingWatch::save_trace(const std::string& run_directory, SnapshotSink* sink) {
  if (!traces_) return;
  Communicator& world = job_.world().communicator();
  Stream& stream = device_.host;
  std::string trace;
  for (const std::string& of_rank : gather_texts(to_text(trace_.records()), world, stream)) trace += of_rank;
  if (!run_directory.empty()) write_file(run_directory + "/" + trace_file, trace);

  std::vector<float> memory;
  Snapshot snapshot;
  snapshot.step = steps_;
  snapshot.weights = trace_.read_gradients(memory);
  const SnapshotPlan plan = plan_snapshot(snapshot.weights, {}, world, stream);
  std::unique_ptr<CheckpointStore> store;
  if (!run_directory.empty()) {
    store = std::make_unique<CheckpointStore>(run_directory + "/" + gradients_folder, StorePolicy{});
  }
  SnapshotSaver(plan, {sink, store.get(), true}, world, stream).save(snapshot);
}

}  // namespace trainctl
