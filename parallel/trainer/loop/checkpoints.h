// The checkpoints of the training loop, and what a supervisor is told of the time that a stop may take.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/interfaces/step_engine.h"
#include "parallel/trainer/snapshot_saver.h"

namespace trainctl {

class Checkpoints {
 public:
  struct Parts {
    StepEngine& engine;
    SnapshotSaver& saver;
    MetricsSink* sink = nullptr;               // null on other ranks than 0
    std::vector<int> mesh;                     // sizes of the data, pipeline and tensor axes
    std::map<std::string, std::string> facts;  // kept with every checkpoint: kernel choices, data fingerprint
    // Called on rank 0 with the longest time in seconds between two moments at which all ranks look for a request to
    // stop, when it has grown, and before and after a checkpoint is written. Null: nothing is told.
    std::function<void(double longest, bool saves)> tell_stop_time;
  };

  // What is referred to outlives the object.
  explicit Checkpoints(Parts parts) : parts_(std::move(parts)) {}

  // Completes the snapshot with tensors, mesh and facts, saves it and reports it to the sink, unless its step was saved
  // before. Collective; throws as SnapshotSaver::save().
  void save(Snapshot snapshot);
  // The step of the newest checkpoint; -1 if there is none.
  std::int64_t saved_step() const { return saved_step_; }
  // Takes a checkpoint of this step for saved, or, with -1, none.
  void set_saved_step(std::int64_t step) { saved_step_ = step; }
  // The hash of the weights as they are, on rank 0; "" on the others. Collective.
  std::string weights_sha256();

  // Notes the time between two moments at which all ranks looked for a request to stop.
  void note_stop_time(double seconds);

 private:
  void tell_stop_time(bool saves) const;

  Parts parts_;
  std::int64_t saved_step_ = -1;
  double longest_between_looks_ = 0;  // in seconds; 0: a few
};

}  // namespace trainctl
