// Writes metrics.jsonl, which has one line with a JSON object for each event of a run. Lines are written at once, or
// later if the disk is full.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/spec/units.h"
#include "io/metrics/due.h"
#include "io/metrics/record_file.h"

namespace trainctl {

class MetricsJsonl final : public MetricsSink {
 public:
  // Appends to the events in the file; an incomplete last line, which a killed run has left, is cut off. `every` is the
  // interval of the steps that are written. The constructor throws Error{resource} if the file cannot be opened. Later
  // failures are logged: see RecordFile. `require_current` throws if this process may not write in the directory any
  // more; it is called before a line, at most once a second.
  MetricsJsonl(const std::string& path, Duration every, std::function<void()> require_current = {});

  void restart(const RestartEvent& event) override;
  void not_finite(const NotFiniteEvent& event) override;
  void corruption(const CorruptionEvent& event) override;
  void refused_resize(const RefusedResizeEvent& event) override;
  void start(const StartEvent& event) override;
  void step(const StepEvent& event) override;
  void gradient_norms(const GradientNormsEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent& event) override;

 private:
  void write(const std::string& line);

  RecordFile file_;
  Due due_;
  std::function<void()> require_current_;
  std::chrono::steady_clock::time_point next_check_{};
};

// Returns the `end` event as a line of metrics.jsonl.
std::string end_line(const EndEvent& event);

// Returns the last line of a metrics.jsonl with its line break; "" if there is no file or the line is incomplete.
// Throws Error{data} if the file cannot be read.
std::string final_line(const std::string& path);

// Returns the status of the `end` event in the last line of a metrics.jsonl; no value if the run has not ended.
std::optional<std::string> final_status(const std::string& path);

}  // namespace trainctl
