// The reports of steps to the sink of metrics: speeds and shares of time are means since the last line of the log.
#pragma once

#include <cstdint>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/interfaces/step_engine.h"

namespace trainctl {

class GpuWatch;
struct StartedStep;

class StepReports {
 public:
  // `sink`: null on other ranks than 0; `gpus`: null where no GPU is watched, on all ranks alike. Both outlive the
  // reports. `log_every`: steps.
  StepReports(MetricsSink* sink, GpuWatch* gpus, std::int64_t log_every)
      : sink_(sink), gpus_(gpus), log_every_(log_every) {}

  // Speeds are of the steps from now on: evaluations and checkpoints do not count.
  void restart();
  // Adds a step that was finished.
  void add(const StartedStep& step, const StepEngine::Parts& parts);
  // Adds time in which ranks communicated outside of the engine.
  void add_communication(double seconds) { shares_.communication += seconds; }
  // Reports a step; speed and shares of `event` are filled in here. Called on all ranks, which exchange the readings of
  // their GPUs.
  void report(StepEvent event);

 private:
  MetricsSink* sink_;
  GpuWatch* gpus_;
  std::int64_t log_every_;
  double start_ = 0;
  double waited_ = 0;
  std::int64_t samples_ = 0;
  StepShares shares_;  // in seconds
};

}  // namespace trainctl
