// What a job would take on the ranks of a mesh: its memory, its step, its checkpoint.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "parallel/plan/simulator.h"
#include "parallel/trainer/options.h"
#include "parallel/trainer/programs.h"

namespace trainctl {

// Where a job would run.
struct PlanTarget {
  std::string about;  // in a line
  Nodes nodes;
  DeviceTraits traits;
  std::int64_t memory = 0;       // bytes that a rank may use; 0: not known
  bool exact = false;            // memory is that of the kernels which will run, else as with assumed kernels
  double storage = 0;            // bytes a second of a checkpoint that is written; 0: not known
  const Costs* costs = nullptr;  // outlives the target
  // Compiles the programs of a rank of a mesh with so many replicas.
  std::function<Compiled(const std::vector<Program>& programs, int replicas)> compile;
};

// A rank that stands for its stage.
struct PlannedStage {
  RunPrograms programs;
  PlacedProgram training;  // of a full batch
  MemoryPlan memory;
  std::vector<MemoryLine> lines;  // of the memory, the arena divided by what lies in it
};

struct Prediction {
  Strategy strategy;
  BatchSizes sizes;
  std::vector<PlannedStage> stages;
  SimulatedStep step;
  std::int64_t checkpoint_bytes = 0;

  const Mesh& mesh() const { return strategy.mesh; }
  int micro_batches() const { return sizes.gradient_accumulation; }
  // Of the stage whose rank needs most.
  const PlannedStage& largest() const;
  std::int64_t memory() const { return largest().memory.total(); }
  bool fits(const PlanTarget& target) const { return target.memory == 0 || memory() <= target.memory; }
  double samples_per_second() const { return static_cast<double>(sizes.training) / step.seconds; }
  // By the rank that sends most, in a step.
  double bytes_sent() const;
  // The share of a pipeline's step that is lost where all stages take equally long and messages no time.
  double least_bubble() const { return (mesh().pipeline - 1.0) / (micro_batches() + mesh().pipeline - 1.0); }
};

// Programs are built and compiled for one rank of each stage, the last replica's, which has no fewer samples than
// others; `sizes` states for which batches. Throws ConfigError where the network does not take the strategy.
Prediction predict(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, const PlanTarget& target,
                   bool timeline = false);

// How a run ends: after so many steps.
struct TrainingLength {
  std::int64_t steps = 0;  // 0: not known
  double seconds = 0;
};
TrainingLength training_length(const Prediction& prediction, const TrainOptions& train, std::int64_t samples_per_epoch);

}  // namespace trainctl
