// Ends a run whose loss or gradients are not finite; in float16, where gradients may overflow, scales the loss.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/exec/interfaces/snapshot_metadata.h"

namespace trainctl {

class Communicator;
class Engine;
class Stream;
struct MeshRank;
struct StartedStep;
struct StepResult;

// The factor on the loss that keeps float16 gradients within their range (Micikevicius et al., 2018): halved after a
// step whose gradient overflowed, doubled after many that did not. The update of a step that overflowed is left out,
// and the optimizer does not count that step.
class LossScale {
 public:
  LossScale() = default;
  // From what text() gave.
  explicit LossScale(const std::string& text);

  double value() const { return value_; }
  // Whether a step with this value did not overflow.
  bool is_proven() const { return finite_steps_ > 0; }
  // How many steps have overflowed since the optimizer's state began.
  std::int64_t left_out() const { return left_out_; }
  // The optimizer's state begins anew.
  void begin_state() { left_out_ = 0; }
  // What became of a step that ran with a scale: several may have begun before the first was known. False where the
  // scale can fall no further.
  bool learn(double scale, bool finite);
  // For checkpoints; exact.
  std::string text() const;

 private:
  double value_ = 1024;
  int finite_steps_ = 0;  // since it changed
  std::int64_t left_out_ = 0;
};

class FiniteCheck {
 public:
  explicit FiniteCheck(bool scales_loss) : scales_loss_(scales_loss) {}

  // The factor on the gradients of the next step; 1 unless the loss is scaled.
  double loss_scale() const { return scales_loss_ ? scale_.value() : 1; }
  // How many earlier steps' updates were left out since the optimizer's state began.
  std::int64_t left_out() const { return scales_loss_ ? scale_.left_out() : 0; }
  // Whether it is in doubt that the next step will be an update, so that no later one may begin before its end.
  bool is_in_doubt() const { return scales_loss_ && !scale_.is_proven(); }
  // The optimizer's state begins anew.
  void begin_state() { scale_.begin_state(); }
  // Why training has diverged with this step; "" if it has not. A gradient beyond float16's range is no divergence: the
  // device has left the update out, and a smaller scale follows. Equal on all ranks, since the reduced gradient is.
  std::string why_diverged(const StartedStep& step, const StepResult& result);

  // The loss scale among the metadata of a checkpoint.
  void save(SnapshotMetadata& metadata) const;
  void restore(const SnapshotMetadata& metadata);

 private:
  bool scales_loss_;
  LossScale scale_;
};

// Repeats the step of a program that was finished `back` steps ago, op by op; returns the name of the first tensor that
// is not finite on any rank, "" if all are finite. What one rank's samples have spoiled reaches the others with the
// gradients: the earliest op is the cause. Collective; no step may be under way.
std::string find_not_finite(Engine& engine, int program, int back, const MeshRank& rank, Communicator& world,
                            Stream& stream);

}  // namespace trainctl
