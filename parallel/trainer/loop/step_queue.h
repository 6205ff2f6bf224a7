// The steps of training that were started and are not finished.
//
// On a device that computes beside the host the next step is started before the one under way is finished.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/step_engine.h"

namespace trainctl {

class OpRecorder;

struct StartedStep {
  StepEngine::StepInput input;
  int program = 0;
  std::int64_t samples = 0;   // of all ranks
  double start_seconds = 0;   // by seconds_now()
  double waited_seconds = 0;  // for its batch
  DataPosition data;          // the position in the data after its batch
};

// The steps [first, end), from 0, whose ops a recorder observes; null: none.
struct ProfiledSteps {
  OpRecorder* recorder = nullptr;
  std::int64_t first = 0;
  std::int64_t end = 0;

  bool contains(std::int64_t step) const { return recorder != nullptr && step >= first && step < end; }
};

class StepQueue {
 public:
  // Returns the index of the training program for a global batch of `samples` samples.
  using ProgramOf = std::function<int(std::int64_t samples)>;
  // The scalars of step number `step`, from 0; asked when its batch is there.
  using InputOf = std::function<StepEngine::StepInput(std::int64_t step)>;

  // What is referred to outlives the queue.
  StepQueue(StepEngine& engine, BatchSource& batches, ProgramOf program_of, InputOf input_of,
            const ProfiledSteps& profiled)
      : engine_(engine),
        batches_(batches),
        program_of_(std::move(program_of)),
        input_of_(std::move(input_of)),
        profiled_(profiled) {}

  // Starts step number `next`, which is the one to be finished next, unless it was started, and as many later ones as
  // the engine takes at once, but none from number `end` on. A profiled step and another one are not under way at once.
  void start(std::int64_t next, std::int64_t end);
  // Waits for the oldest step and fills `result`. `number`: the step's.
  StartedStep finish(std::int64_t number, StepResult& result);
  // Waits for all steps and drops their results; returns how many they were.
  int drain();
  bool empty() const { return started_.empty(); }

 private:
  void start_one(std::int64_t number);

  StepEngine& engine_;
  BatchSource& batches_;
  ProgramOf program_of_;
  InputOf input_of_;
  ProfiledSteps profiled_;
  std::deque<StartedStep> started_;  // the oldest first
};

}  // namespace trainctl
