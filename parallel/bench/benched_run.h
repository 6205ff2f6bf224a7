// A run whose steps are measured: what the benchmarks of steps and of ops work with.
#pragma once

#include <functional>

#include "core/backend/communicator.h"
#include "core/exec/engine.h"
#include "core/exec/interfaces/batch_source.h"
#include "parallel/strategies/programs.h"

namespace trainctl {

// All of it outlives the measurement.
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

}  // namespace trainctl
