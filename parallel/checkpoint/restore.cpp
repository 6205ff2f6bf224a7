// Restoring goes tensor by tensor: rank 0 sends each whole, every rank takes its part.
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

// What differs between the tensors of a checkpoint and those of the model, a few of them.
std::string differences(std::span<const NamedTensor> stored, std::span<const PlannedTensor> wanted) {
  std::map<std::string, Shape> there;
  for (const NamedTensor& tensor : stored) there[tensor.name] = tensor.shape;
  std::string text;
  int count = 0;
  const auto add = [&](const std::string& line) {
    if (++count <= 4) text += (text.empty() ? "" : ", ") + line;
  };
  for (const PlannedTensor& tensor : wanted) {
    const auto found = there.find(tensor.name);
    if (found == there.end()) {
      add(format("'{}' is missing", tensor.name));
    } else {
      if (found->second != tensor.shape) {
        add(format("'{}' is {}, not {}", tensor.name, to_string(found->second), to_string(tensor.shape)));
      }
      there.erase(found);
    }
  }
  for (const auto& [name, shape] : there) add(format("'{}' is not in the model", name));
  if (count > 4) text += format(" and {} more", count - 4);
  return text;
}

// The tensors that rank 0 has stored, in the parts of each rank. One that a rank holds whole goes straight there.
void distribute(std::span<const NamedTensor> stored, const ShardPlan& plan, std::span<const NamedTensor> held,
                Communicator& world, Stream& stream) {
  const auto from = by_name(stored), to = by_name(held);
  std::vector<float> memory;
  for (const PlannedTensor& tensor : plan.tensors()) {
    const auto found = to.find(tensor.name);
    const NamedTensor* own = found == to.end() ? nullptr : found->second;
    const bool is_direct = own != nullptr && own->extent.is_whole();
    View whole{nullptr, DType::float32, tensor.shape.count()};
    if (!is_direct) memory.resize(static_cast<std::size_t>(whole.count));
    whole.data = is_direct ? own->view.data : memory.data();
    if (world.rank() == 0) {
      std::memcpy(whole.data, from.at(tensor.name)->view.data, static_cast<std::size_t>(whole.bytes()));
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
    const std::string differ = differences(source.snapshot->weights, plan.tensors());
    if (differ.empty()) return;
    throw Error(ErrorKind::config,
                format("{} is a checkpoint of another model than {}'s: {}", source.path, source.config_file, differ),
                "use the config that it was made with, another checkpoint, or train anew (run --resume never)");
  });
  comparison.throw_if_any_failed();
  const Snapshot none;
  const Snapshot& stored = source.snapshot != nullptr ? *source.snapshot : none;
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
  if (plan.tensors().empty()) return;
  const Snapshot none;
  const Snapshot& stored = source.snapshot != nullptr ? *source.snapshot : none;
  const std::string differ = source.snapshot != nullptr ? differences(stored.state, plan.tensors()) : "";
  if (!differ.empty()) {
    log::warning(stored.state.empty()
                     ? format("{} holds weights only: the optimizer's state begins anew", source.path)
                     : format("{} has another optimizer's state ({}): it begins anew", source.path, differ));
  }
  if (any_rank(!differ.empty(), world, stream)) return;
  distribute(stored.state, plan, state, world, stream);
}

}  // namespace trainctl
