// Opens a rank's device.
#include "run/job/device.h"

#include <algorithm>

#include "core/backend/select.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/comm/communicators.h"
#include "parallel/comm/rank_gpus.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"

namespace trainctl {
namespace {

// In reproducible mode a kernel on the CPU runs on one thread for any number of cores, since the order of its sums
// depends on the number of threads; the other threads compute other logical shards. On a GPU, threads compile kernels.
// Timing chooses at random between two kernels that are about equally fast, and their results differ in their bits, so
// a run with guaranteed bits does not choose by timing.
std::unique_ptr<Backend> make_backend(std::string_view device, const TrainOptions& train,
                                      const StrategyOptions& strategy, int threads, int local_rank) {
  const bool reproducible = strategy.reproducible.has_value();
  auto backend =
      make_backend(device, BackendOptions{threads, local_rank, train.tf32, train.deterministic || reproducible,
                                          train.cuda_graphs, times_kernels(train, strategy), reproducible});
  if (!backend->computes_in(train.compute())) {
    throw Error(ErrorKind::config,
                format("train.precision: {} does not compute in {}", backend->on_host() ? "the CPU" : "the GPU",
                       name_of(train.precision)),
                "use bfloat16 or float32");
  }
  return backend;
}

RankGpu gpu_info(const Gpu* gpu, const FoundGpus& found, const World& world) {
  RankGpu info{.host = world.hosts()[static_cast<std::size_t>(world.rank())]};
  if (gpu == nullptr) {
    info.why_not = found.why;
    return info;
  }
  info.uuid = gpu->uuid;
  info.model = gpu->name;
  info.numa_node = numa_node_of(gpu->pci_bus_id);
  if (world.size() > 1) {
    info.why_not = found.module->why_no_nccl();
    info.can_share = found.module->nccl_shares_gpus();
  }
  return info;
}

// The communicator between the GPUs. It has a communicator of its own between the hosts, since its calls come between
// the calls of the world's communicator.
std::unique_ptr<Communicator> join_gpus(const ClusterOptions& cluster, const StrategyOptions& strategy,
                                        const std::vector<RankGpu>& ranks, const CudaModule& module, Backend& backend,
                                        World& world) {
  const TransportChoice choice = choose_transport(cluster.communication, ranks);
  auto host = world.communicator().split(0, world.rank());
  if (choice.transport == Transport::nccl) {
    const bool one_axis =
        !strategy.automatic && strategy.pipeline.value == 1 && strategy.place.empty() && strategy.tensor.value == 1;
    return module.make_nccl(std::move(host), backend, !one_axis);
  }
  if (world.rank() == 0) {
    log::warning("the GPUs exchange data through the hosts' memory, which is slow: " + choice.why_staged);
  }
  return staged_communicator(std::move(host), backend);
}

// The GPU memory that no plan uses, since others allocate it later, while the run goes on: CUDA for kernels that it
// loads at their first use and for recorded graphs, NCCL for its buffers at the first message to a peer, cuDNN and
// cuBLASLt for their own. A small GPU runs small networks, whose graphs and buffers are smaller, too.
std::int64_t reserve_of(std::int64_t available) { return std::min(std::int64_t{1} << 30, available / 16); }

}  // namespace

bool times_kernels(const TrainOptions& train, const StrategyOptions& strategy) {
  return train.kernel_timing && !train.deterministic && !strategy.reproducible;
}

std::unique_ptr<Backend> make_backend(const ClusterOptions& cluster, const TrainOptions& train,
                                      const StrategyOptions& strategy, int threads, int local_rank) {
  return make_backend(name_of(cluster.device), train, strategy, threads, local_rank);
}

MemoryLimit memory_of_rank(const ClusterOptions& cluster, std::int64_t available) {
  if (cluster.memory.is_auto()) return {available};
  const std::int64_t limit = cluster.memory.given->bytes;
  return available > 0 && available < limit ? MemoryLimit{available} : MemoryLimit{limit, true};
}

MemoryLimit memory_of_rank(const ClusterOptions& cluster, const Backend& backend, int sharing) {
  const std::int64_t available = backend.free_memory();
  return memory_of_rank(cluster, (available - (backend.on_host() ? 0 : reserve_of(available))) / sharing);
}

std::int64_t memory_of_every_rank(const ClusterOptions& cluster, RankDevice& device, World& world) {
  std::int64_t bytes = memory_of_rank(cluster, *device.backend, device.sharing).bytes;
  world.communicator().all_reduce({&bytes, DType::int64, 1}, Reduction::minimum, device.host);
  device.host.synchronize();
  return bytes;
}

MemoryLimit memory_of_rank(const ClusterOptions& cluster, const Backend& backend, const LaunchPlan& plan) {
  if (!plan.one_host) return memory_of_rank(cluster, 0);
  if (backend.on_host()) return memory_of_rank(cluster, backend, plan.ranks);
  const auto gpus = static_cast<int>(find_gpus(name_of(cluster.device)).gpus.size());
  return memory_of_rank(cluster, backend, (plan.ranks + gpus - 1) / gpus);
}

RankDevice open_device(const ClusterOptions& cluster, const TrainOptions& train, const StrategyOptions& strategy,
                       RankContext& context) {
  World& world = context.world;
  RankDevice device;
  const FoundGpus found = find_gpus(name_of(cluster.device));
  const Gpu* gpu = gpu_of_rank(found.gpus, world.local_rank());
  std::vector<RankGpu> ranks;
  if (cluster.device != DeviceChoice::cpu && world.size() > 1) {
    ranks = exchange_gpus(gpu_info(gpu, found, world), world.communicator(), device.host);
  } else {
    ranks = {gpu_info(gpu, found, world)};
  }
  if (!all_have_gpus(ranks)) {
    if (cluster.device == DeviceChoice::cuda) {
      refuse_without_gpu<CollectiveError>(found);
    }
    device.backend = make_backend("cpu", train, strategy, context.threads, world.local_rank());
    device.sharing = world.local_size();
    return device;
  }
  const std::string mixed = different_models(ranks);
  if (!mixed.empty() && world.rank() == 0) log::warning(mixed + ": all wait for the slowest");
  const Neighbours near = neighbours_of(world.size() > 1 ? world.rank() : 0, ranks);
  context.threads = apply_share_near(context.cores, context.situation, Variables::of_process(), gpu->pci_bus_id,
                                     near.index, near.count);
  device.backend = make_backend("cuda", train, strategy, context.threads, world.local_rank());
  device.gpu_uuid = gpu->uuid;
  const std::string& host = world.hosts()[static_cast<std::size_t>(world.rank())];
  device.sharing = static_cast<int>(std::count_if(
      ranks.begin(), ranks.end(), [&](const RankGpu& rank) { return rank.host == host && rank.uuid == gpu->uuid; }));
  device.peers = world.size() == 1 ? solo_communicator(*device.backend)
                                   : join_gpus(cluster, strategy, ranks, *found.module, *device.backend, world);
  return device;
}

}  // namespace trainctl
