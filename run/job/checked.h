// What `check` finds out of a config: layers, the parts of them on each rank, memory and programs.
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

// What of the network one rank holds, and the memory that it needs. Replicas hold the same.
struct CheckedPosition {
  MeshRank rank;                    // of the last replica: none has more samples
  std::vector<std::string> layers;  // paths of the layers that it computes, or computes a part of
  std::int64_t parameters = 0;      // elements that it holds; its part of those that replicas share
  std::vector<Tensor> split;        // its parts of parameters that the ranks along the tensor axis share
  MemoryPlan memory;                // of the replica's rank that needs most
};

// One of the phases of a run.
struct CheckedPhase {
  std::string text;  // "phase 1 of 2: 3 epochs with adam"
  std::int64_t trainable = 0;
  std::int64_t memory = 0;  // bytes of the rank that needs most
};

// The layers, memory and programs of a config on so many ranks; of a run in phases those of the phase that needs most
// memory.
struct Checked {
  int ranks = 1;
  std::int64_t batch = 0;
  std::vector<RunPrograms> programs;  // of one rank for each that has its own (ranks_with_own_programs)
  MemoryPlan memory;                  // of the rank that needs most
  Mesh mesh;
  BatchSizes sizes;
  std::vector<CheckedPosition> positions;  // of a replica: stage by stage, in each the ranks along the tensor axis
  std::set<std::string> recomputed;        // blocks that `recompute: auto` computes again
  std::size_t assumed = 0;   // kernels that are not chosen yet: compute copies and arena may come out otherwise
  bool automatic = false;    // the strategy is not chosen yet
  bool data_at_hand = true;  // else the config was believed
  bool normalizes_own_samples = false;  // each replica, in batch normalization
  std::int64_t least_share = 0;         // samples of a replica in a full batch
  std::int64_t largest_share = 0;
  bool measures_shares = false;  // before training begins: here shares are equal
  std::optional<Error> unfit;    // why a run has too little memory on this machine
  double flops_per_sample = 0;   // forward
  std::int64_t parameters = 0;
  std::int64_t trainable = 0;
  std::int64_t cached_bytes = 0;          // of all samples in `data.cache`; 0 where there is none or it is not known
  std::vector<std::string> warnings;      // of the data
  std::vector<CheckedPhase> phases = {};  // empty: the run has none

  // Of a share of a full batch.
  int micro_batches() const { return sizes.gradient_accumulation; }
  // The layers of the whole network.
  const std::vector<LayerLine>& layers() const { return programs.front().programs().front().layers; }
};

// Checks a config for the ranks that config and flags ask for. Starts nothing, and takes no memory for the network;
// runs kernels only to `measure` those that are not chosen yet. Throws ConfigError with everything that is wrong,
// Error{data} where `model.weights` cannot be read, and Error{resource} where no choice of kernels would make a rank
// fit.
Checked check_config(const RunSpec& spec, const LaunchFlags& launch, bool measure);

}  // namespace trainctl
