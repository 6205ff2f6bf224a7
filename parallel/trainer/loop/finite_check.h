// Finds steps whose loss or gradient is not finite, and decides what the run does then. With float16, scales the loss,
// since gradients may overflow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/exec/observe/not_finite.h"
#include "parallel/trainer/loop/not_finite_policy.h"
#include "parallel/trainer/loop/skipped_batches.h"

namespace trainctl {

class Communicator;
class Engine;
class Stream;
struct MeshRank;
struct StartedStep;
struct StepResult;

// The factor on the loss that keeps float16 gradients within their range (Micikevicius et al., 2018): it is halved
// after a step whose gradient overflowed, and doubled after many steps without overflow. A step that overflowed is not
// applied to the weights, and the optimizer does not count it.
class LossScale {
 public:
  LossScale() = default;
  // Parses the result of text().
  explicit LossScale(const std::string& text);

  double value() const { return value_; }
  // Whether at least one step with the present value has not overflowed.
  bool is_proven() const { return finite_steps_ > 0; }
  // The number of steps that have overflowed since the optimizer's state was last reset.
  std::int64_t left_out() const { return left_out_; }
  // Called when the optimizer's state is reset.
  void begin_state() { left_out_ = 0; }
  // Updates the scale after a step that ran with `scale`; several steps may have begun before the result of the first
  // was known. Returns false if the scale cannot be lowered further.
  bool learn(double scale, bool finite);
  // Returns the exact state for checkpoints.
  std::string text() const;

 private:
  double value_ = 1024;
  int finite_steps_ = 0;  // number of finite steps since the value changed
  std::int64_t left_out_ = 0;
};

class FiniteCheck {
 public:
  explicit FiniteCheck(bool scales_loss, const NotFinitePolicy& policy = {})
      : scales_loss_(scales_loss), policy_(policy) {}

  const NotFinitePolicy& policy() const { return policy_; }
  // What the run does if this step, counted from 0, is not finite.
  OnNotFinite action_at(std::int64_t step) const { return step == examined_ ? OnNotFinite::stop : policy_.action; }
  // Makes the run compute this step, even if its batch is skipped, and stop if the step is not finite.
  void examine(std::int64_t step) { examined_ = step; }
  // Whether the batch of this step, counted from 0, is skipped without being computed.
  bool skips(std::int64_t step) const { return step != examined_ && skipped_.contains(step); }
  SkippedBatches& skipped() { return skipped_; }

  // The factor on the gradients of the next step; 1 unless the loss is scaled.
  double loss_scale() const { return scales_loss_ ? scale_.value() : 1; }
  // Returns the number of steps without an update since the optimizer's state was last reset.
  std::int64_t left_out() const { return scales_loss_ ? scale_.left_out() : 0; }
  // Whether the next step may overflow. If so, no later step may begin before that step has ended.
  bool is_in_doubt() const { return scales_loss_ && !scale_.is_proven(); }
  // Called when the optimizer's state is reset.
  void begin_state() { scale_.begin_state(); }
  // Returns why training has diverged at this step; "" if it has not. A gradient beyond float16's range is not a
  // divergence: the device has left the update out, and the scale is lowered. The result is equal on all ranks, since
  // the reduced gradient is.
  std::string why_diverged(const StartedStep& step, const StepResult& result);

  // Write and read the loss scale and the skipped batches in the metadata of a checkpoint.
  void save(SnapshotMetadata& metadata) const;
  void restore(const SnapshotMetadata& metadata);

 private:
  bool scales_loss_;
  NotFinitePolicy policy_;
  std::int64_t examined_ = -1;
  SkippedBatches skipped_;
  LossScale scale_;
};

// Runs again, op by op, the step of a program that was finished `back` steps ago. Returns the first tensor that is not
// finite on any rank, with an empty name if all are finite. Values that are not finite spread to other ranks with the
// gradients, so the earliest op on any rank is the cause. `samples`: the numbers of the samples of this rank's share of
// the batch, to name the sample; may be empty. All ranks must call this function while no step is running.
NotFiniteTensor find_not_finite(Engine& engine, int program, int back, const MeshRank& rank,
                                std::vector<std::int64_t> samples, Communicator& world, Stream& stream);

// Whether all parameters and all of the optimizer's state are finite on all ranks, which call this function together.
bool values_are_finite(Engine& engine, Communicator& world, Stream& stream);

}  // namespace trainctl
