// The interface of hooks, which the training loop calls at steps, evaluations and checkpoints, like Keras' callbacks.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/exec/interfaces/snapshot_metadata.h"

namespace trainctl {

struct StepResult;
struct TrainingState;

// Every method is called on all ranks with equal arguments, so that a hook may communicate.
class TrainingHook {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  virtual ~TrainingHook() = default;

  // Called before the first step.
  virtual void on_train_begin(const TrainingState&) {}
  // Called with the result of every step before the loop uses it. Returns false if the results of the other ranks are
  // still unknown, since replicas take steps independently. The loop then waits for a later step before it decides or
  // reports.
  virtual bool combine(std::int64_t step, StepResult& result) {
    (void)step, (void)result;
    return true;
  }
  // Called after a step, or once after several steps whose results combine() has combined, with the mean loss of their
  // samples.
  virtual void on_step_end(const TrainingState& state, double loss) { (void)state, (void)loss; }
  // Called after one or more steps, before a later one begins. `before`: the number of steps done before them.
  virtual void on_pause(const TrainingState& state, std::int64_t before) { (void)state, (void)before; }
  // Called after an evaluation, at the end of an epoch or of the run. A hook may add metrics to the state and change
  // their values.
  virtual void on_evaluation(TrainingState&) {}
  // Called at the end of an epoch, after on_evaluation(). `epochs`: number of epochs done in the current phase;
  // `scheduled`: the schedule's learning rate of the next step.
  virtual void on_epoch_end(const TrainingState& state, double epochs, double scheduled) {
    (void)state, (void)epochs, (void)scheduled;
  }
  // Called when the run, or its phase, is complete, before its last checkpoint.
  virtual void on_train_end(const TrainingState&) {}

  // Returns the least step count above `step` after which on_pause() must be called before another step begins.
  virtual std::int64_t next_pause(std::int64_t step) const { return (void)step, never; }
  // Returns the learning rate of a step; `scheduled`: the schedule's learning rate.
  virtual double learning_rate(double scheduled) const { return scheduled; }
  // Returns why the run ends before its last step; "" if it does not.
  virtual std::string why_end() const { return ""; }

  // Write the hook's state to the metadata of a checkpoint, and restore it from there.
  virtual void save(SnapshotMetadata&) const {}
  virtual void restore(const SnapshotMetadata&) {}
};

// Returns the least multiple of `every` above `step`; TrainingHook::never if `every` is 0.
inline std::int64_t next_multiple(std::int64_t step, std::int64_t every) {
  return every > 0 ? (step / every + 1) * every : TrainingHook::never;
}

// Returns whether a multiple of `every` is in (before, step]; false if `every` is 0.
inline bool passed_multiple(std::int64_t before, std::int64_t step, std::int64_t every) {
  return every > 0 && step / every > before / every;
}

}  // namespace trainctl
