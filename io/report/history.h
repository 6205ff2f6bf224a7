// Reads the history of a run from its metrics.jsonl.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// A step in metrics.jsonl. `event.gpus` is empty; the values of GPUs are in the other members (NaN: unknown).
struct RecordedStep {
  StepEvent event;
  double gpu_utilization = GpuReading::unknown;   // mean of the ranks, 0 to 1
  double gpu_memory_bytes = GpuReading::unknown;  // memory in use on the fullest GPU
};

// A start of the run: the first one, or a resume.
struct RecordedStart {
  StartEvent event;
  double time = 0;       // time of the start, in seconds since 1970
  double last_time = 0;  // time of the last event before the next start or the end of the file
};

struct RunHistory {
  std::vector<RecordedStart> starts;
  std::vector<RecordedStep> steps;
  std::vector<EpochEvent> epochs;
  std::vector<CheckpointEvent> checkpoints;
  std::optional<EndEvent> end;  // end of the last start; empty if the run is still training or was killed
  double last_time = 0;         // time of the last event, in seconds since 1970

  bool empty() const { return starts.empty(); }
  // Returns "completed", "stopped", "diverged" or "failed"; "unfinished" if there is no end event.
  std::string status() const { return end ? end->status : "unfinished"; }
  // Steps and epochs that were done at the end or at the last event.
  std::int64_t steps_done() const;
  double epochs_done() const;
  // Seconds from each start to its last event, summed over all starts; the time between starts does not count.
  double seconds() const;
  // The monitored metric and its best value so far; no value if no metric is monitored or the metric was not measured
  // yet.
  struct Best {
    std::string monitor;  // "val_accuracy"
    double value = 0;
    std::int64_t step = 0;
    bool maximum = true;  // greater is better
  };
  std::optional<Best> best() const;
  // Returns the epoch that ended with this step; null if there is none.
  const EpochEvent* epoch_at(std::int64_t step) const;
};

// Reads the events of a metrics.jsonl. If a run was resumed from a checkpoint, earlier events of later steps are
// removed. An incomplete last line is ignored. Throws Error{data} if the file cannot be read, and with the line's
// number if a line is not an event. If the file does not exist, the history is empty.
RunHistory read_history(const std::string& path);

// Returns an epoch's value of a monitored metric: the value on validation data for "val_loss", on training data for
// "loss"; no value if the epoch has no such value.
std::optional<double> monitored_value(const EpochEvent& epoch, const std::string& monitor);

}  // namespace trainctl
