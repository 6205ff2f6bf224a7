// Builds the programs of a rank: one for each number of samples that occurs in training and in evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/compile/lower.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/program/build.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// The global batch sizes that occur in a run; 0 if a batch does not occur.
struct BatchSizes {
  std::int64_t training = 0;
  std::int64_t training_last = 0;
  std::int64_t evaluation = 0;
  std::int64_t evaluation_last = 0;
  std::int64_t training_resumed_last = 0;  // last batch of the resumed epoch, if it differs
  int gradient_accumulation = 1;           // micro-batches of a replica's share of a full training batch
  std::vector<double> speeds = {};         // speeds of the replicas (BatchDivision)
  LogicalShards shards = {};               // logical shards of training batches
  bool whole_batch = false;                // whether a loss depends on all samples of a batch together

  // How training batches and evaluation batches are divided, for the share of this rank.
  BatchDivision training_division(const MeshRank& rank) const { return {rank, speeds, shards}; }
  BatchDivision evaluation_division(const MeshRank& rank) const {
    return trainctl::evaluation_division(training_division(rank));
  }
};

// The samples of the replicas in a batch that is divided in this way.
SampleShares shares_of_replicas(std::int64_t batch, BatchDivision division);

// Returns one rank for each different set of programs: ranks with the same stage and tensor shard, in replicas with
// equal shares of all batches, have equal programs. Of equal ranks the lowest one is returned, since it writes the
// largest share of a checkpoint. The first returned rank has the same programs as the last rank of the mesh; unless
// replicas have speeds, no rank has more samples of a batch.
std::vector<int> ranks_with_own_programs(const BatchSizes& sizes, const Mesh& mesh);

class RunPrograms {
 public:
  // Builds the programs of a rank of the strategy's mesh and reports problems to the reader. If replicas take steps
  // independently (`sync_every`), the programs are for one replica, and the trainer averages the replicas.
  RunPrograms(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank, Reader& reader);

  // The rank's position in the mesh.
  const MeshRank& rank() const { return rank_; }
  const std::vector<Program>& programs() const { return programs_; }
  // Return the index of the program for a training or evaluation batch with `global_samples` samples on all ranks
  // together.
  int training(std::int64_t global_samples) const;
  int evaluation(std::int64_t global_samples) const;

 private:
  MeshRank rank_;
  std::vector<Program> programs_;
  std::map<std::int64_t, int> training_;
  std::map<std::int64_t, int> evaluation_;
};

// Builds the programs of a rank; throws ConfigError with all problems.
RunPrograms build_run_programs(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes, int rank);

// Returns the programs of a rank. `programs`: the programs of the ranks that ranks_with_own_programs() returns.
const RunPrograms& programs_of(const std::vector<RunPrograms>& programs, const BatchSizes& sizes, const MeshRank& rank);

// Simulates the communications of all ranks in every step that can occur: full and last batches of training, of a
// resumed epoch and of evaluation. Throws the errors of check_communications(). `programs`: as in programs_of().
void check_steps(const std::vector<RunPrograms>& programs, const BatchSizes& sizes, const Mesh& mesh);

}  // namespace trainctl
