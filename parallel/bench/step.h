// The steps of a run measured: their parts and their rate.
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

// A run whose steps or ops are measured; all of it outlives the measurement.
struct BenchedRun {
  Engine& engine;
  const RunPrograms& programs;
  BatchSource& source;
  Communicator& world;
  Stream& host;  // of the world's collectives
};

// Takes steps until the time of seconds_now(), eight at least. All ranks take the same number: rank 0's clock decides,
// every eight steps. Collective.
void run_steps_until(double deadline, const BenchedRun& run, const std::function<void()>& step);

// One step, from the end of the one before it to its own.
struct StepTime {
  double seconds = 0;
  std::int64_t samples = 0;  // over all ranks
  double waited = 0;         // of the host, for the loader
  Engine::Parts parts;
};

// In seconds of a step; means, so that the parts' sum is the step's.
struct StepFigures {
  double median = 0;
  double mean = 0;
  double samples_per_second = 0;  // over time that passed, waits included: the median of five windows
  double waited = 0;              // may lie beside the device's work
  Engine::Parts parts;
  double idle = 0;   // of the mean step, what is none of `parts`
  double data = 0;   // the upload, and of the waiting what left the device idle
  double other = 0;  // the rest
};

// There must be at least one step; those with fewer samples than others count in samples_per_second alone.
StepFigures figures_of(const std::vector<StepTime>& steps);

struct StepBench {
  StepFigures figures;
  std::size_t steps = 0;  // measured for the rate
  int ranks = 1;
  std::int64_t batch = 0;   // samples of a full step, over all ranks
  std::int64_t memory = 0;  // bytes of the engine
  bool own_clock = false;   // the device's parts are in its own time, beside the host's
  int stages = 1;           // of a pipeline
  int micro_batches = 1;    // of a full step
  double bubble = 0;        // of a pipeline: the share of all ranks' passes that they wait for each other

  // What the share is where all stages take equally long and exchanging takes no time.
  double least_bubble() const { return (stages - 1.0) / (micro_batches + stages - 1.0); }
};

// Steps with data for so many seconds, after some to warm up. `asynchronous`: the engine's device computes beside the
// host. Collective; the result is that of the rank.
StepBench bench_step(const BenchedRun& run, bool asynchronous, double seconds);

// One JSON document of a line, and a table for people.
std::string to_json(const StepBench& bench);
std::string to_text(const StepBench& bench);

}  // namespace trainctl
