// Watches the last step of a replay, and prints what it computed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/interfaces/forwarded_source.h"
#include "core/exec/interfaces/step_engine.h"
#include "core/exec/observe/not_finite.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Job;
struct RankDevice;
struct SnapshotPlan;
struct TrainingPlan;

struct ReplayRequest {
  std::int64_t step = 0;  // number of the step to repeat, counted from 1
};

// The beginning of the line that a replay prints; a JSON document follows.
inline constexpr const char* replay_line = "replay ";

// Passes the batches on to the loop, to know the samples of the step, and is a hook of the loop, which ends after the
// step.
class ReplayWatch final : public ForwardedSource, public TrainingHook {
 public:
  // All parameters must outlive the object.
  ReplayWatch(const ReplayRequest& request, Job& job, RankDevice& device, const SnapshotPlan& snapshots,
              BatchSource& batches);

  // Ends the plan after the step, without checkpoints.
  void shorten(TrainingPlan& plan);
  // The step runs alone.
  std::int64_t next_pause(std::int64_t step) const override;
  bool combine(std::int64_t step, StepResult& result) override;
  void on_step_end(const TrainingState& state, double loss) override;
  const Batch& next() override;

  // Whether the step was computed.
  bool is_done() const { return done_; }
  // The samples of this rank's share of the step's batch.
  const std::vector<std::int64_t>& samples() const { return samples_; }
  void set_not_finite(const NotFiniteTensor& found) { found_ = found; }
  // Prints on rank 0 one line: the step's loss, the norm of its gradient, the first tensor that is not finite, and the
  // hash of the weights after the step. Collective.
  void print();

 private:
  const ReplayRequest& request_;
  Job& job_;
  RankDevice& device_;
  const SnapshotPlan& snapshots_;
  std::vector<std::int64_t> samples_;
  bool done_ = false;
  double loss_ = 0, gradient_norm_ = 0;
  NotFiniteTensor found_;
};

}  // namespace trainctl
