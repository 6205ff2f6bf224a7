// Reports steps to the metrics sink; speeds and shares of time are means since the last line of the log.
#pragma once

#include <cstdint>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/interfaces/step_engine.h"

namespace trainctl {

class GpuWatch;
struct StartedStep;

class StepReports {
 public:
  // `sink`: null on all ranks but rank 0. `gpus`: null on all ranks if no GPU is monitored. Both must outlive the
  // object. `log_every`: number of steps.
  StepReports(MetricsSink* sink, GpuWatch* gpus, std::int64_t log_every)
      : sink_(sink), gpus_(gpus), log_every_(log_every) {}

  // Restarts the means, so that evaluations and checkpoints before this call are not counted.
  void restart();
  // Adds a finished step.
  void add(const StartedStep& step, const StepEngine::Phases& phases);
  // Adds the time of communication outside of the engine.
  void add_communication(double seconds) { shares_.communication += seconds; }
  // Reports a step; sets speed and shares of `event`. Called on all ranks, which exchange the readings of their GPUs.
  void report(StepEvent event);

 private:
  MetricsSink* sink_;
  GpuWatch* gpus_;
  std::int64_t log_every_;
  double start_ = 0;
  double waited_ = 0;
  std::int64_t samples_ = 0;
  StepShares shares_;  // sums in seconds, not yet divided by the elapsed time
};

}  // namespace trainctl
