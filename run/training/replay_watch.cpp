// Records the last step of a replay.
#include "run/training/replay_watch.h"

#include <algorithm>
#include <iostream>

#include "core/base/json.h"
#include "parallel/checkpoint/gathered_hash.h"
#include "parallel/trainer/loop/training_state.h"
#include "parallel/trainer/training_plan.h"
#include "run/job/job.h"

namespace trainctl {

ReplayWatch::ReplayWatch(const ReplayRequest& request, Job& job, RankDevice& device, const SnapshotPlan& snapshots,
                         BatchSource& batches)
    : ForwardedSource(batches), request_(request), job_(job), device_(device), snapshots_(snapshots) {}

void ReplayWatch::shorten(TrainingPlan& plan) {
  plan.loop.total_steps = plan.loop.total_steps == 0 ? request_.step : std::min(plan.loop.total_steps, request_.step);
  plan.loop.max_seconds = 0;
  plan.loop.checkpoint_every = 0;
  plan.loop.time_between_failures = 0;
  plan.loop.memory_every = 0;
  plan.histograms_every = plan.gradient_norms_every = 0;
}

std::int64_t ReplayWatch::next_pause(std::int64_t step) const {
  return step < request_.step - 1 ? request_.step - 1 : step < request_.step ? request_.step : never;
}

bool ReplayWatch::combine(std::int64_t step, StepResult& result) {
  if (step != request_.step) return true;
  done_ = true;
  const MetricResult& loss = job_.programs().programs().front().results.front();
  loss_ = loss.of(result.sums, result.count > 0 ? result.count : 1.0);
  gradient_norm_ = result.gradient_norm;
  return true;
}

void ReplayWatch::on_step_end(const TrainingState& state, double loss) {
  if (state.step == request_.step) loss_ = loss;
}

const Batch& ReplayWatch::next() {
  const Batch& batch = source_.next();
  const auto* first = batch.samples.as<std::int64_t>();
  samples_.assign(first, first + batch.count);
  return batch;
}

void ReplayWatch::print() {
  Engine& engine = job_.engine();
  engine.download();
  const std::string weights =
      gathered_sha256(snapshots_.weights, engine.weights(), job_.world().communicator(), device_.host);
  if (job_.world().rank() != 0) return;
  const Json tensor = found_.name.empty() ? Json() : to_json(found_);
  std::cout << replay_line
            << json_text({{"step", request_.step},
                          {"loss", json_number(loss_)},
                          {"gradient_norm", json_number(gradient_norm_)},
                          {"not_finite", tensor},
                          {"weights_sha256", weights}})
            << std::endl;
}

}  // namespace trainctl
