// Where a run tells what happens: events of metrics.jsonl, progress, the summary. Implemented by io/metrics; rank 0
// only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainctl {

struct StartEvent {
  std::string version;
  std::uint64_t seed = 0;
  int ranks = 1;
  std::vector<int> mesh;  // data, pipeline, tensor
  std::vector<std::string> hosts;
  std::string device;
  std::int64_t parameters = 0;
  std::string resumed_from;  // empty: a fresh start
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  std::int64_t first_step = 0;
};

struct StepEvent {
  std::int64_t step = 0;  // steps done, from 1
  double epoch = 0;       // 2.25: a quarter of the third epoch is done
  double loss = 0;        // mean over the global batch
  double learning_rate = 0;
  double samples_per_second = 0;
  double gradient_norm = 0;
  double data_wait_share = 0;  // part of the time since the last event spent waiting for data
};

struct EpochEvent {
  std::int64_t epoch = 0;  // epochs done, from 1
  std::int64_t step = 0;
  std::map<std::string, double> train;       // "loss", "accuracy", ...
  std::map<std::string, double> validation;  // empty where there is none
  double seconds = 0;
};

struct CheckpointEvent {
  std::int64_t step = 0;
  std::string path;
  double seconds = 0;
  std::int64_t bytes = 0;
};

struct EndEvent {
  std::string status;  // completed, stopped, diverged, failed
  std::int64_t step = 0;
  double epoch = 0;
  std::string best_monitor;  // empty: nothing was monitored
  double best_value = 0;
  std::int64_t best_step = 0;
  std::string weights_sha256;
  double seconds = 0;
  std::map<std::string, double> train;  // of the last epoch, for the summary
  std::map<std::string, double> validation;
};

class MetricsSink {
 public:
  virtual ~MetricsSink() = default;

  virtual void start(const StartEvent& event) = 0;
  virtual void step(const StepEvent& event) = 0;  // every step; the sink decides what it shows and writes
  virtual void epoch(const EpochEvent& event) = 0;
  virtual void checkpoint(const CheckpointEvent& event) = 0;
  virtual void end(const EndEvent& event) = 0;
};

}  // namespace trainctl
