// Watches a run of verify-scaling: prints a line of hashes after each step, and traces the last step.
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
  std::int64_t steps = 0;  // number of steps after which the run ends; the learning rates are as in its full schedule
  bool traces = false;     // whether the last step is traced
  std::string tensor;      // the tensor whose values are traced; empty: hashes of all tensors
};

// The files that a traced run leaves in its directory, in addition to its checkpoint: the trace, and a checkpoint of
// the reduced gradients.
inline constexpr const char* trace_file = "trace";
inline constexpr const char* gradients_folder = "gradients";

// Passes the batches on to the loop, since the trace identifies tensors by their samples, and is a hook of the loop
// that prints "step STEPS-DONE WEIGHTS-HASH STATE-HASH" on rank 0 after each step. Collective.
class ScalingWatch final : public ForwardedSource, public TrainingHook {
 public:
  // All parameters must outlive the object.
  ScalingWatch(const ScalingRequest& request, Job& job, RankDevice& device, const SnapshotPlan& snapshots,
               BatchSource& batches);

  // Ends the plan after the requested steps, without checkpoints before that. In a run in phases, `plan` is one phase's
  // plan, and the last phase is traced.
  void shorten(TrainingPlan& plan);
  std::int64_t next_pause(std::int64_t step) const override { return step + 1; }
  void on_pause(const TrainingState& state, std::int64_t before) override;
  // Writes the trace to the run directory of rank 0; `run_directory` is "" on the others. `sink`: on ranks that share
  // the directory, else null.
  void save_trace(const std::string& run_directory, SnapshotSink* sink);

  const Batch& next() override;

 private:
  const ScalingRequest& request_;
  Job& job_;
  RankDevice& device_;
  const SnapshotPlan& snapshots_;
  StepTrace trace_;
  std::int64_t steps_ = 0;  // number of steps of the run
  bool traces_ = false;     // whether the last step is traced
  std::int64_t begun_ = 0;  // number of steps whose batches were taken
};

}  // namespace trainctl
