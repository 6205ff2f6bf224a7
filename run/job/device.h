// The device that a rank computes on, and the communicator by which it reaches the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/backend/immediate_stream.h"
#include "core/compile/memory_fit.h"
#include "parallel/comm/select.h"

namespace trainctl {

struct ClusterOptions;
struct LaunchPlan;
struct RankContext;
struct StrategyOptions;
struct TrainOptions;

struct RankDevice {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> peers;  // communicator of the devices; null: the world's communicator reaches them
  ImmediateStream host;                 // stream of the world's collectives, which exchange data in host memory
  std::string gpu_uuid;                 // UUID of the backend's GPU; "": the CPU
  int sharing = 1;                      // number of ranks that share the device's memory, including this one

  Communicator& communicator(World& world) { return peers ? *peers : world.communicator(); }
};

// Opens the device that the config asks for, and the communicator between the devices of all ranks. On a GPU the rank
// moves to the CPU cores close to it. Throws Error{resource} if there is no such device, and CollectiveError if the
// ranks' devices do not fit together. Collective.
RankDevice open_device(const ClusterOptions& cluster, const TrainOptions& train, const StrategyOptions& strategy,
                       RankContext& context);

// Whether kernels are chosen by timing; else they are chosen by the device, the shapes and the libraries' versions
// alone.
bool times_kernels(const TrainOptions& train, const StrategyOptions& strategy);

// Creates the backend alone. Throws Error{config} if the device does not compute in the config's precision.
std::unique_ptr<Backend> make_backend(const ClusterOptions& cluster, const TrainOptions& train,
                                      const StrategyOptions& strategy, int threads, int local_rank);

// The memory that a rank may use if `available` bytes are available to it (0: not known): those, or cluster.memory if
// that is less.
MemoryLimit memory_of_rank(const ClusterOptions& cluster, std::int64_t available);
// The memory that each of `sharing` ranks that share the backend's memory may use, of the memory that is free now.
MemoryLimit memory_of_rank(const ClusterOptions& cluster, const Backend& backend, int sharing);
// The memory of the rank that may use the least; 0: not known. Collective.
std::int64_t memory_of_every_rank(const ClusterOptions& cluster, RankDevice& device, World& world);
// The memory that each rank of a launch plan may use. The memory available on other hosts is not known.
MemoryLimit memory_of_rank(const ClusterOptions& cluster, const Backend& backend, const LaunchPlan& plan);

}  // namespace trainctl
