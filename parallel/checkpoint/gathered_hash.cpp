// Implements gathered_sha256(): gathers one tensor after the other on rank 0 and hashes it.
#include "parallel/checkpoint/gathered_hash.h"

#include <vector>

namespace trainctl {
namespace {

// Gathers the shards of a tensor in rank 0's `memory` and returns the whole tensor there; returns an empty view on
// other ranks. `own`: the shard that this rank holds.
View gather(const PlannedTensor& tensor, const View& own, std::vector<float>& memory, Communicator& world,
            Stream& stream) {
  if (world.rank() != 0) {
    for (const PlannedShard& shard : tensor.shards) {
      if (shard.writer == world.rank()) world.send(own, 0, stream);
    }
    stream.synchronize();
    return {};
  }
  memory.resize(static_cast<std::size_t>(tensor.shape.count()));
  const View whole{memory.data(), DType::float32, tensor.shape.count()};
  std::vector<float> received;
  for (const PlannedShard& shard : tensor.shards) {
    View values = own;
    if (shard.writer != 0) {
      values = {nullptr, DType::float32, shard.extent.count(tensor.shape)};
      received.resize(static_cast<std::size_t>(values.count));
      values.data = received.data();
      world.receive(values, shard.writer, stream);
      stream.synchronize();
    }
    copy_common(tensor.shape, shard.extent, values, TensorExtent(), whole);
  }
  return whole;
}

}  // namespace

std::string gathered_sha256(const ShardPlan& plan, std::span<const NamedTensor> held, Communicator& world,
                            Stream& stream) {
  const auto held_by_name = by_name(held);
  WeightsHash hash;
  std::vector<float> memory;
  for (const PlannedTensor& tensor : plan.tensors()) {
    const auto found = held_by_name.find(tensor.name);
    const View own = found == held_by_name.end() ? View() : found->second->view;
    const bool is_here = tensor.shards.size() == 1 && tensor.shards[0].writer == 0;
    const View whole = is_here ? own : gather(tensor, own, memory, world, stream);
    if (world.rank() == 0) hash.add(tensor.name, whole);
  }
  return world.rank() == 0 ? hash.finish() : "";
}

}  // namespace trainctl
