// The programs of one rank's run: one for every number of samples that occurs, for training and for evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/compile/lower.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/program/build.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Global batch sizes that occur; 0 where there is none.
struct BatchSizes {
  std::int64_t training = 0;
  std::int64_t training_last = 0;
  std::int64_t evaluation = 0;
  std::int64_t evaluation_last = 0;
  std::int64_t training_resumed_last = 0;  // the last one of the epoch that a resume goes on in, where it differs
  int gradient_accumulation = 1;           // micro-batches of a share of a full training batch
  std::vector<double> speeds = {};         // by which replicas share batches (BatchDivision)
  LogicalShards shards = {};               // of training batches

  // Whose share of training batches, and of batches of evaluation.
  BatchDivision training_division(const MeshRank& rank) const { return {rank, speeds, shards}; }
  BatchDivision evaluation_division(const MeshRank& rank) const {
    return trainctl::evaluation_division(training_division(rank));
  }
};

// One rank for each part of the network and each list of shares that replicas can have of these batches: ranks of one
// part in replicas with equal shares have equal programs, and the lowest of them is the one here, which writes most of
// a checkpoint. The first has the programs of the last rank; unless replicas have speeds, none has more samples of a
// batch.
std::vector<int> ranks_with_own_programs(const BatchSizes& sizes, const Mesh& mesh);

class RunPrograms {
 public:
  // Builds the programs of a rank of the strategy's mesh. Problems go to the reader. Where replicas take steps alone
  // (`sync_every`), programs are those of one replica, and the trainer averages them.
  RunPrograms(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank, Reader& reader);

  // The rank's place in the mesh.
  const MeshRank& rank() const { return rank_; }
  const std::vector<Program>& programs() const { return programs_; }
  // Index of the program for a training batch of so many samples on all ranks together, and of that for an evaluation
  // of so many samples on this rank, which may be 0.
  int training(std::int64_t global_samples) const;
  int evaluation(std::int64_t samples) const;

 private:
  MeshRank rank_;
  std::vector<Program> programs_;
  std::map<std::int64_t, int> training_;
  std::map<std::int64_t, int> evaluation_;
};

// The same; throws ConfigError with everything that is wrong.
RunPrograms build_run_programs(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank);

// The programs of a rank among `programs`, which are those of ranks_with_own_programs().
const RunPrograms& programs_of(const std::vector<RunPrograms>& programs, const BatchSizes& sizes, const MeshRank& rank);

// Plays the communications of all ranks in every step that can occur (check_communications, which throws): a full
// batch, the last one, that of a resumed epoch, and those of evaluation. `programs`: those of
// ranks_with_own_programs().
void check_steps(const std::vector<RunPrograms>& programs, const BatchSizes& sizes, const Mesh& mesh);

}  // namespace trainctl
