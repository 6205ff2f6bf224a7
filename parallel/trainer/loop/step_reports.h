// Reports steps to the metrics sink; speeds and shares of time are means since the last line of the log.
#pragma once

#include <cstdint>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/interfaces/step_engine.h"

namespace trainctl {

class GpuWatch;
class StragglerWatch;
struct StartedStep;

class StepReports {
 public:
  // `sink`: null on all ranks but rank 0. `gpus`: null on all ranks if no GPU is monitored. `stragglers`: null on all
  // ranks if their times are not compared. All of them must outlive the object. `log_every`: number of steps.
  StepReports(MetricsSink* sink, GpuWatch* gpus, std::int64_t log_every, StragglerWatch* stragglers = nullptr)
      : sink_(sink), gpus_(gpus), log_every_(log_every), stragglers_(stragglers) {}

  // Restarts the means, so that evaluations and checkpoints before this call are not counted.
  void restart();
  // Adds a finished step.
  void add(const StartedStep& step, const StepEngine::Phases& phases);
  // Adds the time of communication outside of the engine.
  void add_communication(double seconds);
  // Adds the time of computing outside of the engine.
  void add_computing(double seconds);
  // Reports a step; sets speed and shares of `event`. Called on all ranks, which exchange the readings of their GPUs
  // and their times.
  void report(StepEvent event);

 private:
  void restart_means();

  MetricsSink* sink_;
  GpuWatch* gpus_;
  std::int64_t log_every_;
  StragglerWatch* stragglers_;
  double start_ = 0;
  double waited_ = 0;
  std::int64_t samples_ = 0;
  StepShares shares_;  // sums in seconds, not yet divided by the elapsed time
};

}  // namespace trainctl
