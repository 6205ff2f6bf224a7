// Measures the steps of a run: their phases and their rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

class BatchSource;
class Communicator;
class RunPrograms;
class Stream;

// A run for measurements of its steps or ops; all members must outlive the measurement.
struct BenchedRun {
  Engine& engine;
  const RunPrograms& programs;
  BatchSource& source;
  Communicator& world;
  Stream& host;  // stream for collectives of `world`
};

// Calls `step` until seconds_now() reaches `deadline`, at least eight times. All ranks must call this function and run
// the same number of steps: rank 0's clock decides after every eight steps.
void run_steps_until(double deadline, const BenchedRun& run, const std::function<void()>& step);

// The times of one step, from the end of the previous step to its own end.
struct StepTime {
  double seconds = 0;
  std::int64_t samples = 0;  // number of samples on all ranks
  double waited = 0;         // time that the host waited for the loader
  Engine::Phases phases;
};

// Times of a step in seconds. They are means, so that the phases add up to the step.
struct StepFigures {
  double median = 0;
  double mean = 0;
  double samples_per_second = 0;  // median of five windows; their elapsed time includes waits
  double waited = 0;              // time that the host waited for the loader, possibly while the device worked
  Engine::Phases phases;
  double idle = 0;   // time of the mean step that belongs to no phase in `phases`
  double data = 0;   // time of the upload, and of waits that left the device idle
  double other = 0;  // the rest of `idle`
};

// Computes the figures of at least one step; steps with fewer samples than others only count for samples_per_second.
StepFigures figures_of(const std::vector<StepTime>& steps);

struct StepBench {
  StepFigures figures;
  std::size_t steps = 0;  // number of steps that were measured for the rate
  int ranks = 1;
  std::int64_t batch = 0;   // number of samples of a full step on all ranks
  std::int64_t memory = 0;  // bytes of the engine's memory
  bool own_clock = false;   // whether the device's own clock measures its phases
  int stages = 1;           // number of stages of a pipeline
  int micro_batches = 1;    // number of micro-batches of a full step
  double bubble = 0;        // fraction of the passes of all ranks that the stages of a pipeline wait for each other

  // Returns the bubble if all stages take equally long and communication takes no time.
  double ideal_bubble() const { return (stages - 1.0) / (micro_batches + stages - 1.0); }
};

// Runs steps with data for `seconds` seconds after a warm-up. `asynchronous`: the engine's device computes while the
// host continues. All ranks must call this function; it returns the result of this rank.
StepBench bench_step(const BenchedRun& run, bool asynchronous, double seconds);

// Return the result as a JSON document on one line, and as a table for people.
std::string to_json(const StepBench& bench);
std::string to_text(const StepBench& bench);

}  // namespace trainctl
