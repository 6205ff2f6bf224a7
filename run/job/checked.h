// Checks a config for `check`: finds its layers, the layers of each rank, memory and programs.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/compile/memory_plan.h"
#include "parallel/strategies/programs.h"

namespace trainctl {

struct LaunchFlags;
struct RunSpec;

// The layers and parameters of one rank of a replica, and the memory that it needs. They are the same in all replicas.
struct CheckedPosition {
  MeshRank rank;                    // in the last replica: none has more samples
  std::vector<std::string> layers;  // paths of the layers that it computes, whole or as a shard
  std::int64_t parameters = 0;      // elements that it holds; its shard of those that replicas share
  std::vector<Tensor> split;        // its shards of parameters that the ranks along the tensor axis share
  MemoryPlan memory;                // memory of the rank at this position that needs the most
};

// One of the phases of a run.
struct CheckedPhase {
  std::string text;  // "phase 1 of 2: 3 epochs with adam"
  std::int64_t trainable = 0;
  std::int64_t memory = 0;  // bytes of the rank that needs the most
};

// The layers, memory and programs of a config on `ranks` ranks. For a run in phases, these are the values of the phase
// that needs the most memory.
struct Checked {
  int ranks = 1;
  std::int64_t batch = 0;
  std::vector<RunPrograms> programs;  // one for each rank with its own programs (ranks_with_own_programs)
  MemoryPlan memory;                  // memory of the rank that needs the most
  Mesh mesh;
  BatchSizes sizes;
  std::vector<CheckedPosition> positions;  // the ranks of a replica: by stage, then along the tensor axis
  std::set<std::string> recomputed;        // blocks that `recompute: auto` computes again
  std::size_t assumed = 0;  // number of kernels that are not chosen yet, on which compute copies and arena depend
  bool automatic = false;   // the strategy is not chosen yet
  std::int64_t steps_per_epoch = 0;     // 0: unknown
  bool data_at_hand = true;             // false: shapes and classes are taken from the config
  bool normalizes_own_samples = false;  // batch normalization uses the statistics of each replica
  std::int64_t least_share = 0;         // samples of a replica in a full batch
  std::int64_t largest_share = 0;
  bool measures_shares = false;    // whether training measures shares when it begins; here the shares are equal
  std::int64_t shared_memory = 0;  // bytes for the copies of checkpoint.memory_every on rank 0's host
  std::optional<Error> unfit;      // why a run has too little memory on this machine
  double flops_per_sample = 0;     // FLOPs of the forward pass
  std::int64_t parameters = 0;
  std::int64_t trainable = 0;
  std::int64_t cached_bytes = 0;          // bytes of all samples in `data.cache`; 0: no cache, or unknown
  std::vector<std::string> warnings;      // warnings about the data
  std::vector<CheckedPhase> phases = {};  // empty: the run has no phases

  // The number of micro-batches of a step.
  int micro_batches() const { return sizes.gradient_accumulation; }
  // The layers of the whole network.
  const std::vector<LayerLine>& layers() const { return programs.front().programs().front().layers; }
};

// Checks a config for the ranks that config and flags ask for. Starts no ranks, and allocates no memory for the
// network; runs kernels only to `measure` those that are not chosen yet. Throws ConfigError with all errors,
// Error{data} if `model.weights` cannot be read, and Error{resource} if a rank would not fit into its memory with any
// choice of kernels.
Checked check_config(const RunSpec& spec, const LaunchFlags& launch, bool measure);

}  // namespace trainctl
