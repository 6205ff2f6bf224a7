// Gathering tensors on rank 0, one after the other.
#include "parallel/checkpoint/gathered_hash.h"

#include <vector>

namespace trainctl {
namespace {

// A tensor whose parts lie on other ranks, whole in rank 0's `memory`; `own` is what this rank holds of it.
View gather(const PlannedTensor& tensor, const View& own, std::vector<float>& memory, Communicator& world,
            Stream& stream) {
  if (world.rank() != 0) {
    for (const PlannedShard& part : tensor.parts) {
      if (part.writer == world.rank()) world.send(own, 0, stream);
    }
    stream.synchronize();
    return {};
  }
  memory.resize(static_cast<std::size_t>(tensor.shape.count()));
  const View whole{memory.data(), DType::float32, tensor.shape.count()};
  std::vector<float> received;
  for (const PlannedShard& part : tensor.parts) {
    View values = own;
    if (part.writer != 0) {
      values = {nullptr, DType::float32, part.extent.count(tensor.shape)};
      received.resize(static_cast<std::size_t>(values.count));
      values.data = received.data();
      world.receive(values, part.writer, stream);
      stream.synchronize();
    }
    copy_common(tensor.shape, part.extent, values, TensorExtent(), whole);
  }
  return whole;
}

}  // namespace

std::string gathered_sha256(const ShardPlan& plan, std::span<const NamedTensor> held, Communicator& world,
                            Stream& stream) {
  const auto by_names = by_name(held);
  WeightsHash hash;
  std::vector<float> memory;
  for (const PlannedTensor& tensor : plan.tensors()) {
    const auto found = by_names.find(tensor.name);
    const View own = found == by_names.end() ? View() : found->second->view;
    const bool is_here = tensor.parts.size() == 1 && tensor.parts[0].writer == 0;
    const View whole = is_here ? own : gather(tensor, own, memory, world, stream);
    if (world.rank() == 0) hash.add(tensor.name, whole);
  }
  return world.rank() == 0 ? hash.finish() : "";
}

}  // namespace trainctl
