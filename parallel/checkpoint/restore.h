// From a checkpoint that rank 0 has read into the parts of weights and optimizer state that every rank holds.
#pragma once

#include <span>
#include <string>

#include "core/exec/interfaces/snapshot.h"
#include "parallel/checkpoint/shard_plan.h"

namespace trainctl {

class Communicator;
class Engine;
class Stream;

// A checkpoint to restore from, as rank 0 knows it; the other ranks give an empty one.
struct RestoreSource {
  const Snapshot* snapshot = nullptr;  // its tensors are whole
  std::string path;                    // of the checkpoint
  std::string config_file;             // of the model that is restored
};

// Copies the checkpoint's weights into what this rank holds of them, whatever parts the ranks hold. Collective. All
// ranks throw CollectiveError{config} that names the checkpoint, the config and the tensors that differ where it is of
// another model.
void restore_weights(const RestoreSource& source, const ShardPlan& plan, std::span<const NamedTensor> weights,
                     Communicator& world, Stream& stream);

// Likewise into an engine, whose device then has them.
void restore_weights(const RestoreSource& source, Engine& engine, Communicator& world, Stream& stream);

// Likewise the optimizer's state. Where the checkpoint has none, or another optimizer's, the state stays as it is, and
// rank 0 says so.
void restore_state(const RestoreSource& source, const ShardPlan& plan, std::span<const NamedTensor> state,
                   Communicator& world, Stream& stream);

}  // namespace trainctl
