// Job: what one rank needs to work on a config, put together: backend, programs, engine.
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

// The input from which programs are built. `data` as found out or stated.
ProgramSpec program_spec(const RunSpec& spec, const DataInfo& data);

// The data as it is; where it is not at hand, as far as the config states it, and one full batch of so many samples
// stands for the samples. Reads no samples.
DataInfo known_data(const RunSpec& spec, std::int64_t batch, bool& at_hand);

// How the strategy applies on so many ranks of a device. Throws ConfigError where the network cannot be cut as the
// config says.
Strategy strategy_for(const RunSpec& spec, const DataInfo& data, int ranks, const DeviceTraits& device);
inline Strategy strategy_for(const RunSpec& spec, const DataInfo& data, int ranks, const Backend& backend) {
  return strategy_for(spec, data, ranks, traits_of(backend));
}

// The programs of a rank; throws ConfigError with everything that is wrong.
RunPrograms build_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy, const BatchSizes& sizes,
                           int rank);

// The programs of one rank for each that has its own (ranks_with_own_programs), in that order. The communications
// of all ranks were played to the end, which throws Error{internal} where they do not fit together.
std::vector<RunPrograms> build_all_programs(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                            const BatchSizes& sizes);

// The blocks that `recompute: auto` computes again where each rank may use so much memory (choose_recomputed());
// nothing with other options. Kernels that are not chosen yet are assumed.
std::set<std::string> recomputed_blocks(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                                        const BatchSizes& sizes, std::int64_t limit, Backend& backend,
                                        KernelChoices choices);

// Rank 0 chooses implementations: those of the checkpoint (`known_choices`), those kept for this hardware, and timed
// ones for what is new, also for the batch sizes that only other ranks have; or all of them by rules where the config
// forbids timing (times_kernels()). Before that it checks that all ranks' programs fit together. Collective.
AgreedKernels choose_kernels(const RunSpec& spec, const DataInfo& data, const Strategy& strategy,
                             const BatchSizes& sizes, const std::string& known_choices, Backend& backend, World& world,
                             Stream& stream);

// The host memory of the copies that a rank's parts of checkpoints are written from (written_bytes); 0 if training
// waits for checkpoints. The first of the compiled programs trains.
std::int64_t staged_bytes(const Compiled& compiled, const CheckpointOptions& options, const MeshRank& rank);

// Adds the host memory of a rank: of its sources of batches and, if it trains, of the copies that its parts of
// checkpoints are written from.
Compiled with_host_memory(Compiled compiled, const RunSpec& spec, const DataInfo& data, const BatchDivision& division);

// The programs of a rank, compiled, with its host memory.
Compiled compile_rank(const std::vector<Program>& programs, const RunSpec& spec, const DataInfo& data,
                      const BatchDivision& division, Backend& backend, KernelChoices& choices);

// What can be wrong with a job before kernels are chosen: config errors, and memory that no choice of kernels would
// make suffice. Collective; throws as Job does.
void check_job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start);

class Job {
 public:
  // Collective. Everything that can be wrong with the config, the device's memory or a kernel comes to light here.
  // Implementations are chosen by rank 0, for all ranks' batch sizes; the others follow. `known_choices` are those of
  // the run's checkpoint ("" for none). Weights are zero afterwards.
  Job(const RunSpec& spec, const DataInfo& data, RankDevice& device, World& world, const DataPosition& start,
      const std::string& known_choices);

  World& world() { return world_; }
  const Backend& backend() const { return *device_.backend; }
  Stream& host_stream() { return device_.host; }
  // Allocates the memory of batches: host memory from which the device copies fast.
  AllocateBatch batch_memory() const {
    return [&backend = *device_.backend](std::int64_t bytes) { return backend.allocate_host(bytes); };
  }
  Engine& engine() { return *engine_; }
  const RunPrograms& programs() const { return programs_; }
  const AgreedKernels& kernels() const { return kernels_; }
  const ProgramSpec& program_spec() const { return program_spec_; }
  const std::vector<TargetEncoding>& target_encodings() const { return programs_.programs().front().target_encodings; }
  const MeshRank& rank() const { return programs_.rank(); }
  // Whose share of training batches this rank computes.
  BatchDivision division() const { return {rank(), speeds_, shards_}; }
  // What all ranks do, the blocks found for `recompute: auto` included.
  const Strategy& strategy() const { return strategy_; }

 private:
  RankDevice& device_;
  World& world_;
  ProgramSpec program_spec_;
  Strategy strategy_;
  std::vector<double> speeds_;  // of the replicas
  LogicalShards shards_;        // of training batches
  RunPrograms programs_;
  AgreedKernels kernels_;
  MeshAxes axes_;
  std::unique_ptr<Engine> engine_;
};

// Initial weights in a job's engine: the same on every rank.
void initialize_engine(const RunSpec& spec, Job& job);

}  // namespace trainctl
