// The queue of training steps that were started and are not finished.
//
// On a device that runs in parallel with the host, the next step is started before the current one is finished.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/step_engine.h"

namespace trainctl {

class FlightRecord;
class OpRecorder;

struct StartedStep {
  StepEngine::StepInput input;
  int program = 0;
  std::int64_t samples = 0;   // number of samples of all ranks
  double start_seconds = 0;   // start time by seconds_now()
  double waited_seconds = 0;  // time spent waiting for its batch
  DataPosition data;          // the position in the data after its batch
};

// The steps [first, end), counted from 0. A recorder observes their ops; no steps are observed if it is null.
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
  // Returns the scalars of step number `step`, from 0; called when its batch is available.
  using InputOf = std::function<StepEngine::StepInput(std::int64_t step)>;

  // All arguments must outlive the queue. `flight`: the rank's flight record; null: none.
  StepQueue(StepEngine& engine, BatchSource& batches, ProgramOf program_of, InputOf input_of,
            const ProfiledSteps& profiled, FlightRecord* flight = nullptr)
      : engine_(engine),
        batches_(batches),
        program_of_(std::move(program_of)),
        input_of_(std::move(input_of)),
        profiled_(profiled),
        flight_(flight) {}

  // Starts step number `next`, the next one to finish, unless it was started before. Also starts later steps with
  // numbers below `end`, up to the number of steps that the engine can run together. A profiled step and a step that is
  // not profiled do not run at the same time.
  void start(std::int64_t next, std::int64_t end);
  // Waits for the oldest step and fills `result`. `number`: the number of this step.
  StartedStep finish(std::int64_t number, StepResult& result);
  // Waits for all steps and drops their results; returns the number of steps.
  int drain();
  bool empty() const { return started_.empty(); }

 private:
  void start_one(std::int64_t number);

  StepEngine& engine_;
  BatchSource& batches_;
  ProgramOf program_of_;
  InputOf input_of_;
  ProfiledSteps profiled_;
  FlightRecord* flight_;
  std::deque<StartedStep> started_;  // oldest first
};

}  // namespace trainctl
