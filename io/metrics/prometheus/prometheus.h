// The metrics sink of `log.prometheus`: keeps the newest state of a run and serves it to Prometheus.
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
  // Listens from now on, and answers with the values that are known so far. `run` is the run's name, `metrics_path` its
  // metrics.jsonl, from which earlier starts are counted; the present start must be in it before start() is called.
  // Throws the errors of MetricsServer.
  Prometheus(const Located<ListenAddress>& address, const std::string& run, std::string metrics_path);

  void start(const StartEvent& event) override;
  // Never waits: a step that ends while a scrape reads the state is not recorded.
  void step(const StepEvent& event) override;
  void epoch(const EpochEvent& event) override;
  void checkpoint(const CheckpointEvent& event) override;
  void end(const EndEvent&) override {}  // the destructor stops the server

 private:
  std::string metrics_path_;
  std::mutex mutex_;
  PrometheusState state_;
  MetricsServer server_;  // the last member, since its threads read the state
};

}  // namespace trainctl
