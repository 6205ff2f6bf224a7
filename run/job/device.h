// What one rank computes with: its device, and how it reaches the other ranks from there.
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
  std::unique_ptr<Communicator> peers;  // between the devices; null: the world's communicator reaches them
  ImmediateStream host;                 // of the world's collectives, which are between the hosts' memories
  std::string gpu_uuid;                 // of the GPU that the backend computes on; "": the CPU

  Communicator& communicator(World& world) { return peers ? *peers : world.communicator(); }
};

// The device that the config asks for, and the ranks' way to each other from there; all ranks together. On a GPU the
// rank moves to the cores close to it. Throws Error{resource} where the device is not there, and CollectiveError where
// ranks do not go together.
RankDevice open_device(const ClusterOptions& cluster, const TrainOptions& train, const StrategyOptions& strategy,
                       RankContext& context);

// Whether kernels are chosen by timing; else they follow from the device, the shapes and the libraries' versions alone.
bool times_kernels(const TrainOptions& train, const StrategyOptions& strategy);

// The backend alone. Throws Error{config} where the device does not compute in the config's precision.
std::unique_ptr<Backend> make_backend(const ClusterOptions& cluster, const TrainOptions& train,
                                      const StrategyOptions& strategy, int threads, int local_rank);

// The memory that a rank may use where so many bytes are available to it (0: not known): those, or what the config
// states (cluster.memory) where that is less.
MemoryLimit memory_of_rank(const ClusterOptions& cluster, std::int64_t available);
// Likewise of each of so many ranks on this host, to which what is free now is available. On the CPU ranks share the
// host's memory.
MemoryLimit memory_of_rank(const ClusterOptions& cluster, const Backend& backend, int ranks_on_host);
// Likewise of the rank that may use least; 0: not known. Collective.
std::int64_t memory_of_every_rank(const ClusterOptions& cluster, RankDevice& device, World& world);
// Likewise of each rank of a plan. What is available on other hosts is not known.
MemoryLimit memory_of_rank(const ClusterOptions& cluster, const Backend& backend, const LaunchPlan& plan);

}  // namespace trainctl
