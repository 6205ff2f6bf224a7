// The steps of a run measured: their parts and their rate.
#pragma once

#include <cstdint>
#include <string>

#include "parallel/bench/benched_run.h"
#include "parallel/bench/step_times.h"

namespace trainctl {

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
