// Job: the backend, programs and engine with which one rank works on a config.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/exec/engine.h"
#include "parallel/mesh/axes.h"
#include "parallel/strategies/programs.h"
#include "parallel/trainer/agreement.h"
#include "run/job/device.h"

namespace trainctl {

struct CheckpointOptions;
struct Compiled;
struct RunSpec;

// The input from which programs are built. `data`: of the data, or as the config describes it.
ProgramSpec program_spec(const RunSpec& spec, const DataInfo& data);

// Returns the info of the data. If a file or folder that the config names does not exist here, clears `at_hand` and
// returns what the config says of the data, with `batch` samples where their number is not known. Reads no samples.
// Throws Error{data} if the data is here, but cannot be read.
DataInfo known_data(const RunSpec& spec, std::int64_t batch, bool& at_hand);

// How the strategy applies on `ranks` ranks of a device. Throws ConfigError if the network cannot be split as the
// config requires.
Strategy strategy_for(const RunSpec& spec, const DataInfo& data, int ranks, const DeviceTraits& device);
inline Strategy strategy_for(const RunSpec& spec, const DataInfo& data, int ranks, const Backend& backend) {
  return strategy_for(spec, data, ranks, traits_of(backend));
}

// The programs of a rank. Throws ConfigError with all errors.
RunPrograms build_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, const BatchSizes& sizes,
                           int rank);

// The programs of each rank with its own programs (ranks_with_own_programs), in that order. Simulates the
// communications of all ranks, and throws Error{internal} if they do not match.
std::vector<RunPrograms> build_all_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                            const BatchSizes& sizes);

// The blocks that `recompute: auto` computes again if each rank may use `limit` bytes of memory (choose_recomputed());
// empty with other options. Kernels that are not chosen yet are assumed.
std::set<std::string> recomputed_blocks(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                        const BatchSizes& sizes, std::int64_t limit, Backend& backend,
                                        KernelChoices choices);

// Rank 0 chooses kernels: from the checkpoint (`known_choices`), from the cache for this hardware, and for other ops,
// also for ops with batch sizes that only other ranks have, by timing; or all of them by rules if the config forbids
// timing (times_kernels()). Before that it checks that the programs of all ranks match. Collective.
AgreedKernels choose_kernels(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                             const BatchSizes& sizes, const std::string& known_choices, Backend& backend, World& world,
                             Stream& stream);

// The host memory of the copies from which a rank writes its shards of checkpoints (written_bytes); 0 if training waits
// for checkpoints. The first of the compiled programs trains.
std::int64_t staged_bytes(const Compiled& compiled, const CheckpointOptions& options, const MeshRank& rank);

// The bytes in the shared memory of rank 0's host for the copies of a run's state; 0 without checkpoint.memory_every.
// `stages`: the training programs of the network's stages.
std::int64_t shared_memory_bytes(const std::vector<const Program*>& stages, const CheckpointOptions& options);

// Adds the host memory of a rank: of its sources of batches and, if it trains, of the copies from which it writes its
// shards of checkpoints.
Compiled with_host_memory(Compiled compiled, const RunSpec& spec, const DataInfo& data, const BatchDivision& division);

// Compiles the programs of a rank, and adds its host memory.
Compiled compile_rank(const std::vector<Program>& programs, const RunSpec& spec, const DataInfo& data,
                      const BatchDivision& division, Backend& backend, KernelChoices& choices);

// Checks for the errors of a job that are known before kernels are chosen: config errors, and too little memory for any
// choice of kernels. Collective; throws as Job does.
void check_job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start);

class Job {
 public:
  // Throws if the config, the device's memory or a kernel has a problem. Rank 0 chooses the kernels, for the batch
  // sizes of all ranks, and the others use its choices. `known_choices`: those of the run's checkpoint ("" for none).
  // Weights are zero afterwards. Collective.
  Job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start,
      const std::string& known_choices);

  World& world() { return world_; }
  const Backend& backend() const { return *device_.backend; }
  Stream& host_stream() { return device_.host; }
  // Returns the function that allocates the memory of batches: host memory from which the device copies fast.
  AllocateBatch batch_memory() const {
    return [&backend = *device_.backend](std::int64_t bytes) { return backend.allocate_host(bytes); };
  }
  Engine& engine() { return *engine_; }
  const RunPrograms& programs() const { return programs_; }
  const AgreedKernels& kernels() const { return kernels_; }
  const ProgramSpec& program_spec() const { return program_spec_; }
  const std::vector<TargetEncoding>& target_encodings() const { return programs_.programs().front().target_encodings; }
  const MeshRank& rank() const { return programs_.rank(); }
  // The division of training batches, with the share that this rank computes.
  BatchDivision division() const { return {rank(), speeds_, shards_}; }
  // The strategy of all ranks, with the blocks that were found for `recompute: auto`.
  const Strategy& strategy() const { return strategy_; }

 private:
  RankDevice& device_;
  World& world_;
  ProgramSpec program_spec_;
  Strategy strategy_;
  std::vector<double> speeds_;  // speeds of the replicas
  LogicalShards shards_;        // logical shards of training batches
  RunPrograms programs_;
  AgreedKernels kernels_;
  MeshAxes axes_;
  std::unique_ptr<Engine> engine_;
};

// Puts the initial weights into a job's engine: the same ones on every rank.
void initialize_engine(const RunSpec& spec, Job& job);

}  // namespace trainctl
