// What a run has told in its metrics.jsonl, read back.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// A step that was written; its event's `gpus` are empty, and their means are here (NaN: not known).
struct ToldStep {
  StepEvent event;
  double gpu_utilization = GpuReading::unknown;   // mean of the ranks, 0 to 1
  double gpu_memory_bytes = GpuReading::unknown;  // of the fullest GPU
};

// A start of the run: the first one, and one for each time that it went on.
struct ToldStart {
  StartEvent event;
  double time = 0;       // seconds since 1970
  double last_time = 0;  // of the last event before the next start, or of the last event at all
};

struct RunHistory {
  std::vector<ToldStart> starts;
  std::vector<ToldStep> steps;
  std::vector<EpochEvent> epochs;
  std::vector<CheckpointEvent> checkpoints;
  std::optional<EndEvent> end;  // of the last start; nothing where it goes on, or was killed
  double last_time = 0;         // of the last event

  bool empty() const { return starts.empty(); }
  // "completed", "stopped", "diverged", "failed", or "unfinished" where nothing says how it ended.
  std::string status() const { return end ? end->status : "unfinished"; }
  // Those done when it ended or was last heard of.
  std::int64_t steps_done() const;
  double epochs_done() const;
  // Seconds from each start to its last event, summed over all starts: the time between starts does not count.
  double seconds() const;
  // What is monitored and its best value so far; nothing where nothing is, or nothing was measured yet.
  struct Best {
    std::string monitor;  // "val_accuracy"
    double value = 0;
    std::int64_t step = 0;
    bool maximum = true;  // more is better
  };
  std::optional<Best> best() const;
  // The epoch that ended with this step; null where none did.
  const EpochEvent* epoch_at(std::int64_t step) const;
};

// The events of a metrics.jsonl. A start that goes on from a checkpoint takes back what was told of later steps. A last
// line that is torn is left out. Throws Error{data} with the line where one is no event, and where the file cannot be
// read; a file that does not exist is a history without events.
RunHistory read_history(const std::string& path);

// The value of an epoch by the name of a monitored metric: that of validation for "val_loss", that of training for
// "loss"; nothing where there is none.
std::optional<double> monitored_value(const EpochEvent& epoch, const std::string& monitor);

}  // namespace trainctl
