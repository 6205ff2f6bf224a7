// Computes the samples per second, and the share of time of each phase of a step.
#include "parallel/trainer/loop/step_reports.h"

#include <algorithm>

#include "core/base/clock.h"
#include "parallel/health/gpus.h"
#include "parallel/health/stragglers.h"
#include "parallel/trainer/loop/step_queue.h"

namespace trainctl {

void StepReports::restart_means() {
  start_ = seconds_now();
  waited_ = 0;
  samples_ = 0;
  shares_ = {};
}

void StepReports::restart() {
  restart_means();
  if (stragglers_ != nullptr) stragglers_->restart();
}

void StepReports::add(const StartedStep& step, const StepEngine::Phases& phases) {
  samples_ += step.samples;
  waited_ += step.waited_seconds;
  shares_.upload += phases.upload;
  shares_.forward += phases.forward;
  shares_.backward += phases.backward;
  shares_.communication += phases.communication;
  shares_.update += phases.update;
  if (stragglers_ != nullptr) stragglers_->add(step.waited_seconds, phases);
}

void StepReports::add_communication(double seconds) {
  shares_.communication += seconds;
  if (stragglers_ != nullptr) stragglers_->add_communication(seconds);
}

void StepReports::add_computing(double seconds) {
  if (stragglers_ != nullptr) stragglers_->add_computing(seconds);
}

void StepReports::report(StepEvent event) {
  if (gpus_ != nullptr) gpus_->step(event.step);
  if (stragglers_ != nullptr) {
    stragglers_->step(event.step, gpus_ != nullptr ? gpus_->samples() : std::span<const GpuSample>());
  }
  if (sink_ == nullptr) return;
  const double seconds = std::max(seconds_now() - start_, 1e-9);
  event.samples_per_second = static_cast<double>(samples_) / seconds;
  event.data_wait_share = waited_ / seconds;
  if (gpus_ != nullptr) event.gpus = gpus_->samples();
  event.shares = shares_;
  for (const auto& [name, share] : step_shares) event.shares.*share /= seconds;
  sink_->step(event);
  if (event.step % log_every_ == 0) restart_means();
}

}  // namespace trainctl
