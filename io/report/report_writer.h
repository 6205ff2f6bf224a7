// report.html of a run directory, written while the run goes on.
#pragma once

#include <string>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// Writes the page behind epochs, as long as that takes less than a hundredth of the time, and at the end, from what the
// run directory holds by then: the sink stands behind the one that writes metrics.jsonl. A page that cannot be written
// is warned of, once, and stops no run.
class ReportWriter final : public MetricsSink {
 public:
  explicit ReportWriter(std::string directory) : directory_(std::move(directory)) {}

  void start(const StartEvent&) override {}
  void step(const StepEvent&) override {}
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent&) override {}
  void end(const EndEvent& event) override;

 private:
  void write();

  std::string directory_;
  double next_ = 0;  // when behind an epoch the page is due, by seconds_now()
  bool warned_ = false;
};

}  // namespace trainctl
