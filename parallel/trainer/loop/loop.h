// The training loop: runs steps, evaluations and checkpoints until an end on which all ranks agree.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/trainer/loop/checkpoint_interval.h"
#include "parallel/trainer/loop/loop_plan.h"
#include "parallel/trainer/loop/not_finite_step.h"
#include "parallel/trainer/loop/step_queue.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

enum class Activity : std::uint32_t;
class Checkpoints;
class Communicator;
class FiniteCheck;
class MetricsSink;
class StepReports;
class Stream;
class TrainingHook;
struct EndEvent;
struct Evaluation;

// The objects that the loop uses; all of them must outlive the loop.
struct LoopContext {
  StepEngine& engine;
  BatchSource& training;
  StepQueue::ProgramOf program_of;
  const std::vector<MetricResult>& results;  // results of the programs, the loss first
  Communicator& world;
  Stream& stream;  // stream for the loop's own collectives, which run immediately
  Checkpoints& checkpoints;
  StepReports& reports;
  FiniteCheck& finite;
  MetricsSink* sink = nullptr;  // null on all ranks but rank 0
  // Evaluates the validation data after `step` steps; returns an empty value if a stop was requested. Null if there is
  // no validation data.
  std::function<std::optional<Evaluation>(std::int64_t step)> evaluate;
  // Finds the cause of a loss or gradient that is not finite (find_not_finite).
  std::function<std::string(int program, int back)> find_not_finite;
  // Whether all parameters and all of the optimizer's state are finite, on all ranks, which call it together. Null:
  // they are.
  std::function<bool()> values_are_finite;
  // Keeps the state before a step that was not finite, without tensors in the snapshot, and the batch of the step.
  // Returns a remedy to append to the error. All ranks call it. May be null.
  std::function<std::string(Snapshot, const NotFiniteStep&)> keep_not_finite;
  // Returns the hash of the present weights on rank 0, and "" on the other ranks. All ranks call it.
  std::function<std::string()> weights_sha256;
  std::function<bool()> stop_requested;
  std::vector<TrainingHook*> hooks;  // called in this order
  ProfiledSteps profiled;
};

class TrainingLoop {
 public:
  TrainingLoop(LoopContext parts, LoopPlan plan);

  // Resumes from a snapshot whose weights and state the engine already has. `is_stored`: whether it is a checkpoint of
  // this run's store, so that it need not be saved again if no step follows.
  void resume(const Snapshot& snapshot, bool is_stored);

  // Trains to the end. Returns the event "completed" or "stopped", equal on all ranks except weights_sha256, which only
  // rank 0 sets. If rollback() is set, the event has no values. Throws Error{diverged} on all ranks after a NaN or Inf
  // that ends the run, and the errors of hooks.
  EndEvent run();

  // Why the run must go back to a checkpoint, if run() ended for this; equal on all ranks.
  const std::optional<Rollback>& rollback() const { return rollback_; }

  // Whether the phase is complete, so that its checkpoint contains the next phase, if there is one.
  bool ended_phase() const;
  std::int64_t step() const { return state_.step; }  // number of steps done
  double epoch() const { return static_cast<double>(state_.step) / static_cast<double>(plan_.steps_per_epoch); }

 private:
  void enter(Activity activity, std::string_view text);
  void begin();
  void run_steps();
  void finish_step();
  bool evaluate();
  void end_epoch();
  Snapshot snapshot() const;
  void save();
  bool puts_off_save();
  EndEvent end(bool completed) const;

  StepEngine::StepInput input_of(std::int64_t step) const;
  std::int64_t next_pause() const;
  bool at_last_step() const { return plan_.total_steps > 0 && state_.step >= plan_.total_steps; }
  bool at_epoch_end() const { return state_.step > 0 && state_.step % plan_.steps_per_epoch == 0; }
  bool evaluation_is_due() const { return at_epoch_end() && state_.epoch_means.count() > 0; }
  double step_loss() const;
  void require_weight() const;
  void pass(const StartedStep& step);
  void not_finite(const StartedStep& step, const std::string& cause);
  void skip_update(const StartedStep& step, const std::string& cause, bool values_are_finite);
  void roll_back(const StartedStep& step, const std::string& cause, bool values_are_finite);
  [[noreturn]] void diverged(const StartedStep& step, const std::string& cause, const std::string& detail = "");

  LoopContext parts_;
  LoopPlan plan_;
  CheckpointInterval interval_;
  TrainingState state_;
  StepQueue queue_;
  StepResult result_;     // result of the last finished step, or of several steps that a hook has combined
  bool combined_ = true;  // whether result_ includes all ranks
  bool is_best_ = false;  // whether the last evaluation was the best and no step has followed
  bool stop_ = false;     // whether the ranks have agreed to stop
  std::string why_end_;   // why the run ends before its last step; "" if it does not
  std::optional<Rollback> rollback_;
  std::int64_t left_out_ = 0;  // number of steps since the last end of an epoch that did not change the weights
  double start_seconds_ = 0;
  double epoch_start_ = 0;
};

}  // namespace trainctl
