// Predicts the memory, the step time and the checkpoint size of a job on the ranks of a mesh.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "parallel/plan/simulator.h"
#include "parallel/strategies/programs.h"

namespace trainctl {

struct TrainOptions;

// Compiles the programs of a rank, including the memory of its batch sources.
using RankCompiler = std::function<Compiled(const std::vector<Program>& programs, const BatchDivision& division)>;

// The machine on which a job would run.
struct PlanTarget {
  std::string about;  // a description in one line
  Nodes nodes;
  std::int64_t memory = 0;  // bytes that a rank may use; 0: unknown
  bool exact = false;       // whether memory is computed with the kernels that will run, or with assumed ones
  double storage = 0;       // bytes per second at which a checkpoint is written; 0: unknown
  std::shared_ptr<const Costs> costs;
  RankCompiler compile;
};

// The ranks whose programs a plan builds. `stages`: one rank of each stage; a rank with another share of a smaller
// batch may need more memory. `own_programs`: also all other ranks with different programs; their number grows with the
// mesh.
enum class PlannedRanks { stages, own_programs };

// A job divided among the ranks of a mesh. One rank represents each stage: the rank of the first replica with the most
// samples of a full batch.
struct PlannedRun {
  Strategy strategy;
  BatchSizes sizes;
  std::vector<RunPrograms> ranks;  // first the ranks that represent the stages, in order, then the others

  std::span<const RunPrograms> stages() const { return std::span(ranks).first(index(strategy.mesh.pipeline)); }
  std::span<const RunPrograms> others() const { return std::span(ranks).subspan(index(strategy.mesh.pipeline)); }

 private:
};

// Builds the programs for the batches of `sizes`. Throws Error{config} if the network does not support the strategy.
PlannedRun plan_run(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, PlannedRanks ranks);

// A stage, described by the rank that represents it.
struct PlannedStage {
  RunPrograms programs;
  PlacedProgram training;  // program for a full training batch
  MemoryPlan memory;       // plan of the stage's rank that needs the most memory, among the planned ranks
  // The lines of the memory plan, with the slots divided by their contents; empty unless requested.
  std::vector<MemoryLine> lines;
};

// Optional parts of a prediction, which take longer to compute.
struct PredictionDetails {
  bool lines = false;     // PlannedStage::lines
  bool timeline = false;  // SimulatedStep::timeline
};

struct Prediction {
  Strategy strategy;
  BatchSizes sizes;
  std::vector<PlannedStage> stages;
  SimulatedStep step;    // with strategy.sync_every, it includes its share of the next average
  double averaging = 0;  // seconds of an average; 0 without strategy.sync_every
  std::int64_t checkpoint_bytes = 0;

  const Mesh& mesh() const { return strategy.mesh; }
  int micro_batches() const { return sizes.gradient_accumulation; }
  // Returns the stage with the rank that needs the most memory.
  const PlannedStage& largest() const;
  std::int64_t memory() const { return largest().memory.total(); }
  bool fits(const PlanTarget& target) const { return target.memory == 0 || memory() <= target.memory; }
  double samples_per_second() const { return static_cast<double>(sizes.training) / step.seconds; }
  // Returns the largest number of bytes that a rank sends in a step.
  double bytes_sent() const;
  // The fraction of a pipeline's step that is lost if all stages take equally long and messages take no time.
  double ideal_bubble() const { return (mesh().pipeline - 1.0) / (micro_batches() + mesh().pipeline - 1.0); }
};

// Returns the bytes of a checkpoint's tensors: all parameters and running statistics and, unless `weights_only`, all
// optimizer states and moving averages, each once. `stages`: the training programs of the network's stages. States of a
// factored optimizer depend on the stages and are counted for these.
std::int64_t checkpoint_bytes(const std::vector<const Program*>& stages, bool weights_only = false);

// Compiles the run's programs and simulates a step of a full batch on ranks of equal speed.
Prediction predict(const PlannedRun& run, const PlanTarget& target, const PredictionDetails& details = {});

// The length of a training run.
struct TrainingLength {
  std::int64_t steps = 0;  // 0: unknown
  double seconds = 0;
};
TrainingLength training_length(const Prediction& prediction, const TrainOptions& train, std::int64_t samples_per_epoch);

}  // namespace trainctl
