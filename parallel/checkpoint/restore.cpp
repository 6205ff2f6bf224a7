// Restores tensor by tensor: rank 0 broadcasts the whole tensor and every rank copies its shard.
#include "parallel/checkpoint/restore.h"

#include <cstring>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/engine.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Describes how the tensors of a checkpoint differ from the tensors of the model: up to four differences, and the
// number of further ones.
std::string differences(std::span<const NamedTensor> stored, std::span<const PlannedTensor> expected) {
  std::map<std::string, Shape> remaining;
  for (const NamedTensor& tensor : stored) remaining[tensor.name] = tensor.shape;
  std::string text;
  int count = 0;
  const auto add = [&](const std::string& line) {
    if (++count <= 4) text += (text.empty() ? "" : ", ") + line;
  };
  for (const PlannedTensor& tensor : expected) {
    const auto found = remaining.find(tensor.name);
    if (found == remaining.end()) {
      add(format("'{}' is missing", tensor.name));
    } else {
      if (found->second != tensor.shape) {
        add(format("'{}' is {}, not {}", tensor.name, to_string(found->second), to_string(tensor.shape)));
      }
      remaining.erase(found);
    }
  }
  for (const auto& [name, shape] : remaining) add(format("'{}' is not in the model", name));
  if (count > 4) text += format(" and {} more", count - 4);
  return text;
}

// Copies the tensors that rank 0 has read into the tensors and shards that each rank holds. A rank that holds a whole
// tensor receives directly into it.
void distribute(std::span<const NamedTensor> stored, const ShardPlan& plan, std::span<const NamedTensor> held,
                Communicator& world, Stream& stream) {
  const auto stored_by_name = by_name(stored), held_by_name = by_name(held);
  std::vector<float> memory;
  for (const PlannedTensor& tensor : plan.tensors()) {
    const auto found = held_by_name.find(tensor.name);
    const NamedTensor* own = found == held_by_name.end() ? nullptr : found->second;
    const bool is_direct = own != nullptr && own->extent.is_whole();
    View whole{nullptr, DType::float32, tensor.shape.count()};
    if (!is_direct) memory.resize(static_cast<std::size_t>(whole.count));
    whole.data = is_direct ? own->view.data : memory.data();
    if (world.rank() == 0) {
      std::memcpy(whole.data, stored_by_name.at(tensor.name)->view.data, static_cast<std::size_t>(whole.bytes()));
    }
    world.broadcast(whole, 0, stream);
    if (is_direct) continue;
    stream.synchronize();
    if (own != nullptr) copy_common(tensor.shape, TensorExtent(), whole, own->extent, own->view);
  }
  stream.synchronize();
}

}  // namespace

void restore_weights(const RestoreSource& source, const ShardPlan& plan, std::span<const NamedTensor> weights,
                     Communicator& world, Stream& stream) {
  JointAttempt comparison(world, stream);
  comparison.run([&] {
    if (source.snapshot == nullptr) return;
    const std::string difference = differences(source.snapshot->weights, plan.tensors());
    if (difference.empty()) return;
    throw Error(
        ErrorKind::config,
        format("{} is a checkpoint of another model than {}'s: {}", source.path, source.config_file, difference),
        "use the config that it was made with, another checkpoint, or train anew (run --resume never)");
  });
  comparison.throw_if_any_failed();
  const Snapshot empty;
  const Snapshot& stored = source.snapshot != nullptr ? *source.snapshot : empty;
  distribute(stored.weights, plan, weights, world, stream);
}

void restore_weights(const RestoreSource& source, Engine& engine, Communicator& world, Stream& stream) {
  engine.download();
  const SnapshotPlan plan = plan_snapshot(engine.weights(), {}, world, stream);
  restore_weights(source, plan.weights, engine.weights(), world, stream);
  engine.upload();
}

void restore_state(const RestoreSource& source, const ShardPlan& plan, std::span<const NamedTensor> state,
                   Communicator& world, Stream& stream) {
  if (plan.tensors().empty()) {
    if (source.snapshot != nullptr && !source.snapshot->state.empty()) {
      log::warning(
          format("{} has the state of another optimizer ({}): it is dropped, since this optimizer has no state",
                 source.path, differences(source.snapshot->state, plan.tensors())));
    }
    return;
  }
  const Snapshot empty;
  const Snapshot& stored = source.snapshot != nullptr ? *source.snapshot : empty;
  const std::string difference = source.snapshot != nullptr ? differences(stored.state, plan.tensors()) : "";
  if (!difference.empty()) {
    log::warning(stored.state.empty()
                     ? format("{} holds weights only: the optimizer's state is reset", source.path)
                     : format("{} has the state of another optimizer ({}): the optimizer's state is reset", source.path,
                              difference));
  }
  if (any_rank(!difference.empty(), world, stream)) return;
  distribute(stored.state, plan, state, world, stream);
}

}  // namespace trainctl
