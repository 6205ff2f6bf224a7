// One of the runs of verify-scaling, watched: a line of hashes after each step, and a trace of the last one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/exec/interfaces/forwarded_source.h"
#include "core/exec/observe/step_trace.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Job;
class SnapshotSink;
struct RankDevice;
struct SnapshotPlan;
struct TrainingPlan;

struct ScalingRequest {
  std::int64_t steps = 0;  // the run ends after them, with the rates of its own schedule
  bool traces = false;     // its last step
  std::string tensor;      // whose values the trace holds; empty: hashes of all
};

// What a traced run leaves in its directory, beside its checkpoint: the trace, and a checkpoint of the reduced
// gradients.
inline constexpr const char* trace_file = "trace";
inline constexpr const char* gradients_folder = "gradients";

// Stands between the loop and its batches, whose samples the trace is keyed by, and is a hook of the loop that prints
// "step steps-done weights-hash state-hash" on rank 0 after each step. Collective.
class ScalingWatch final : public ForwardedSource, public TrainingHook {
 public:
  // What is referred to outlives the watch.
  ScalingWatch(const ScalingRequest& request, Job& job, RankDevice& device, const SnapshotPlan& snapshots,
               BatchSource& batches);

  // Ends the plan after the requested steps, and leaves out checkpoints before them. Of a run in phases the plan is of
  // one of them; the trace is of the last.
  void shorten(TrainingPlan& plan);
  std::int64_t next_pause(std::int64_t step) const override { return step + 1; }
  void on_pause(const TrainingState& state, std::int64_t before) override;
  // Writes the trace to rank 0's run directory ("" on the others). `sink`: of the ranks that share it.
  void save_trace(const std::string& run_directory, SnapshotSink* sink);

  const Batch& next() override;

 private:
  const ScalingRequest& request_;
  Job& job_;
  RankDevice& device_;
  const SnapshotPlan& snapshots_;
  StepTrace trace_;
  std::int64_t steps_ = 0;  // of the run
  bool traces_ = false;     // the last of them
  std::int64_t begun_ = 0;  // whose batches were taken
};

}  // namespace trainctl
