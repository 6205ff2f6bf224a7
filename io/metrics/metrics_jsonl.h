// metrics.jsonl: one JSON object a line for everything that happens in a run, each line on its way to the disk at once.
#pragma once

#include <optional>
#include <string>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/spec/units.h"
#include "io/metrics/due.h"

namespace trainctl {

class MetricsJsonl final : public MetricsSink {
 public:
  // Goes on behind the events that the file holds; a last line that a killed run left torn is cut off. `every`: which
  // steps are written. Throws Error{resource}, now and later, where the file cannot be written.
  MetricsJsonl(std::string path, Duration every);
  ~MetricsJsonl() override;
  MetricsJsonl(const MetricsJsonl&) = delete;
  MetricsJsonl& operator=(const MetricsJsonl&) = delete;

  void start(const StartEvent& event) override;
  void step(const StepEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent& event) override;

 private:
  void write(const std::string& line);

  std::string path_;
  Due due_;
  int descriptor_ = -1;
};

// The `end` event as a line of metrics.jsonl.
std::string end_line(const EndEvent& event);

// The last line of a metrics.jsonl, with its line break; "" where there is no file or the line is torn. Throws
// Error{data} where the file cannot be read.
std::string final_line(const std::string& path);

// The status of the `end` event that is the last line of a metrics.jsonl; nothing where the run has not ended.
std::optional<std::string> final_status(const std::string& path);

}  // namespace trainctl
