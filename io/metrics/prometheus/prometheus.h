// The sink behind `log.prometheus`: keeps the newest state of a run for those who scrape it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/exec/interfaces/metrics_sink.h"
#include "io/metrics/prometheus/server.h"
#include "io/metrics/prometheus/text.h"

namespace trainctl {

class Prometheus final : public MetricsSink {
 public:
  // Listens from now on, and answers with what is known. `run`: its name; `metrics_path`: its metrics.jsonl, which
  // tells of earlier starts and has a start event before this sink. Throws as MetricsServer does.
  Prometheus(const Located<ListenAddress>& address, const std::string& run, std::string metrics_path);

  void start(const StartEvent& event) override;
  // Never waits: while a scrape reads, a step leaves no trace but by the next one.
  void step(const StepEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent&) override {}  // the server ends with this object

 private:
  std::string metrics_path_;
  std::mutex mutex_;
  PrometheusState state_;
  MetricsServer server_;  // last: its thread reads the state
};

}  // namespace trainctl
