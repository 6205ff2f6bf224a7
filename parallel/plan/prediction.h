// What a job would take on the ranks of a mesh: its memory, its step, its checkpoint.
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

// Compiles the programs of a rank, with the memory of its sources of batches.
using RankCompiler = std::function<Compiled(const std::vector<Program>& programs, const BatchDivision& division)>;

// Where a job would run.
struct PlanTarget {
  std::string about;  // in a line
  Nodes nodes;
  std::int64_t memory = 0;  // bytes that a rank may use; 0: not known
  bool exact = false;       // memory is that of the kernels which will run, else as with assumed kernels
  double storage = 0;       // bytes a second of a checkpoint that is written; 0: not known
  std::shared_ptr<const Costs> costs;
  RankCompiler compile;
};

// The ranks whose programs a plan builds. Of each stage one, which may need less memory than a rank whose share of a
// smaller batch is cut otherwise; or all that have programs of their own, whose number grows with the mesh.
enum class PlannedRanks { stages, own_programs };

// A job cut for the ranks of a mesh. One rank stands for each stage. It is of the replica that has the most samples of
// a full batch; if several replicas have as many, of the first.
struct PlannedRun {
  Strategy strategy;
  BatchSizes sizes;
  std::vector<RunPrograms> ranks;  // those that stand for the stages, in their order; then the others

  std::span<const RunPrograms> stages() const { return std::span(ranks).first(index(strategy.mesh.pipeline)); }
  std::span<const RunPrograms> others() const { return std::span(ranks).subspan(index(strategy.mesh.pipeline)); }

 private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
};

// `sizes` states for which batches programs are built. Throws Error{config} where the network does not take the
// strategy.
PlannedRun plan_run(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, PlannedRanks ranks);

// A stage by the rank that stands for it.
struct PlannedStage {
  RunPrograms programs;
  PlacedProgram training;  // of a full batch
  MemoryPlan memory;       // of the stage's planned rank that needs most
  // Of the memory, the arena divided by what lies in it; empty unless it was asked for.
  std::vector<MemoryLine> lines;
};

// What a prediction is to hold beside figures: more work.
struct PredictionDetails {
  bool lines = false;     // of memory
  bool timeline = false;  // of the simulated step
};

struct Prediction {
  Strategy strategy;
  BatchSizes sizes;
  std::vector<PlannedStage> stages;
  SimulatedStep step;    // of replicas that take steps alone, with its part of the next average
  double averaging = 0;  // seconds that such an average takes (strategy.sync_every)
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

// What a checkpoint holds of a network with these training programs of its stages: all parameters and running
// statistics, and unless it has weights only all optimizer states and moving averages, each once. Where an optimizer's
// states are factored, of the stages given.
std::int64_t checkpoint_bytes(const std::vector<const Program*>& stages, bool weights_only = false);

// Compiles the run's programs and simulates a step of a full batch on ranks of equal speed.
Prediction predict(const PlannedRun& run, const PlanTarget& target, const PredictionDetails& details = {});

// How a run ends: after so many steps.
struct TrainingLength {
  std::int64_t steps = 0;  // 0: not known
  double seconds = 0;
};
TrainingLength training_length(const Prediction& prediction, const TrainOptions& train, std::int64_t samples_per_epoch);

}  // namespace trainctl
