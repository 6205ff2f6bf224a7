// The sink of a run's events: metrics.jsonl, progress, the summary. Implemented by io/metrics; used on rank 0 only.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/nvml.h"
#include "core/exec/interfaces/restart_event.h"
#include "core/metrics/result.h"

namespace trainctl {

// One reading of a rank's GPU.
struct GpuSample {
  int rank = 0;
  GpuReading reading;
};

// The use of all ranks' GPUs during a run. NaN: unknown.
struct GpuSummary {
  int gpus = 0;                                    // GPUs with at least one reading
  double utilization = 0;                          // mean over time and GPUs, 0 to 1
  double power_watts = 0;                          // mean over time, added over GPUs
  double energy_joules = 0;                        // sum over GPUs
  double peak_memory_bytes = GpuReading::unknown;  // largest value of any GPU
  std::uint64_t throttled = 0;                     // all reasons seen, as bits for throttle_words()
};

struct StartEvent {
  std::string version;
  std::uint64_t seed = 0;
  int ranks = 1;
  std::vector<int> mesh;  // data, pipeline, tensor
  std::vector<std::string> hosts;
  std::string device;
  std::string kernels = {};  // hash of the kernel choices (AgreedKernels)
  std::int64_t parameters = 0;
  std::string resumed_from;  // empty: a fresh start
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  std::int64_t first_step = 0;
  double flops_per_sample = 0;  // FLOPs of a training step's layers: three times the FLOPs of the forward pass
  double peak_flops = 0;        // FLOP/s of all ranks' GPUs according to their data sheets; 0: unknown
  std::string monitor;  // such as "val_accuracy", which determines the best checkpoint; empty: no metric is monitored
  bool monitor_maximum = true;                                    // whether larger values are better
  std::vector<std::pair<std::string, std::int64_t>> memory = {};  // memory of rank 0: regions and their bytes
};

// Shares (0 to 1) of the time since the last event on rank 0. The remaining time is the wait for data and the host's
// own work. On devices that compute in parallel to the host, these are shares of the device's time, and all 0 with one
// rank.
struct StepShares {
  double upload = 0;  // copies of the batch to the device
  double forward = 0;
  double backward = 0;
  double communication = 0;  // the computation's wait for other ranks
  double update = 0;         // update of the weights
};

// The shares and their names in metrics.jsonl.
inline constexpr std::pair<const char*, double StepShares::*> step_shares[] = {
    {"upload", &StepShares::upload},
    {"forward", &StepShares::forward},
    {"backward", &StepShares::backward},
    {"communication", &StepShares::communication},
    {"update", &StepShares::update}};

struct StepEvent {
  std::int64_t step = 0;  // number of steps done, from 1
  double epoch = 0;       // number of epochs done; 2.25: two epochs and a quarter of the third
  double loss = 0;        // mean over the global batch
  double learning_rate = 0;
  double samples_per_second = 0;
  double gradient_norm = 0;
  double data_wait_share = 0;       // share of the time since the last event spent waiting for data, 0 to 1
  std::span<const GpuSample> gpus;  // the latest readings; empty without GPUs or readings
  StepShares shares = {};
};

// A step whose loss or gradient was not finite, and what the run did then.
struct NotFiniteEvent {
  std::int64_t step = 0;  // number of the step, from 1
  double epoch = 0;
  std::string action;              // stop, skip, rollback
  std::string cause;               // "a loss is not finite"
  std::int64_t count = 0;          // skip: number of such steps in a row; rollback: number of skipped batches
  std::int64_t to_step = -1;       // rollback: the step of the checkpoint
  std::int64_t skipped_step = -1;  // rollback: the step, from 1, whose batch is skipped from now on
};

// Replicas that differed, and what the run did then.
struct CorruptionEvent {
  std::int64_t step = 0;           // number of steps done
  std::string action;              // stop, repair
  std::vector<int> ranks;          // the ranks that differed from the majority; empty: unknown
  std::vector<std::string> hosts;  // their hosts
  std::string difference;          // the tensors that differed
};

// A request for another number of ranks that was refused: the run goes on as before.
struct RefusedResizeEvent {
  std::int64_t step = 0;  // number of steps done
  int ranks = 0;          // the requested number
  std::string reason;
};

// The norms of the gradients of the mean loss in a step, before clipping and weight decay.
struct GradientNormsEvent {
  std::int64_t step = 0;
  std::map<std::string, double> norms;  // by layer; all parameters of a layer together
};

struct EpochEvent {
  double epoch = 0;  // number of epochs done, from 1; a fraction if the run ends within an epoch
  std::int64_t step = 0;
  std::map<std::string, double> train;       // "loss", "accuracy", ...
  std::map<std::string, double> validation;  // empty without validation
  double seconds = 0;
  std::map<std::string, Table> train_tables = {}, validation_tables = {};  // "confusion_matrix"
};

struct CheckpointEvent {
  std::int64_t step = 0;
  std::string path;
  double seconds = 0;  // time from the moment at which the checkpoint was due until it was complete
  std::int64_t bytes = 0;
  double stall_seconds = 0;  // the portion of `seconds` during which training waited
};

struct EndEvent {
  std::string status;  // completed, stopped, diverged, failed
  std::string reason;  // why a completed run ended before its last epoch or step; empty if it did not
  std::int64_t step = 0;
  double epoch = 0;
  std::string best_monitor;  // empty: no metric was monitored
  double best_value = 0;
  std::int64_t best_step = 0;
  std::string weights_sha256;
  double seconds = 0;
  std::map<std::string, double> train;  // results of the last epoch, for the summary
  std::map<std::string, double> validation;
  GpuSummary gpus;
};

class MetricsSink {
 public:
  virtual ~MetricsSink() = default;

  virtual void restart(const RestartEvent&) {}  // after the `start` event of the new attempt
  virtual void start(const StartEvent& event) = 0;
  virtual void step(const StepEvent& event) = 0;  // called for every step; the sink decides what it prints and writes
  virtual void gradient_norms(const GradientNormsEvent&) {}
  virtual void not_finite(const NotFiniteEvent&) {}
  virtual void corruption(const CorruptionEvent&) {}
  virtual void epoch(const EpochEvent& event) = 0;
  virtual void checkpoint(const CheckpointEvent& event) = 0;
  virtual void end(const EndEvent& event) = 0;
  virtual void refused_resize(const RefusedResizeEvent&) {}
};

}  // namespace trainctl
