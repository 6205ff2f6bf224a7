// Restores the weights and the optimizer state of all ranks from a checkpoint that rank 0 has read.
#pragma once

#include <span>
#include <string>

#include "core/exec/interfaces/snapshot.h"
#include "parallel/checkpoint/shard_plan.h"

namespace trainctl {

class Communicator;
class Engine;
class Stream;

// A checkpoint to restore from, given by rank 0; the other ranks pass an empty one.
struct RestoreSource {
  const Snapshot* snapshot = nullptr;  // the checkpoint's content; its tensors are whole
  std::string path;                    // path of the checkpoint
  std::string config_file;             // config file of the model
};

// Copies the checkpoint's weights into the tensors and shards that this rank holds; any distribution over the ranks is
// supported. All ranks must call this function. If the checkpoint is of another model, all ranks throw
// CollectiveError{config} that names the checkpoint, the config and the tensors that differ.
void restore_weights(const RestoreSource& source, const ShardPlan& plan, std::span<const NamedTensor> weights,
                     Communicator& world, Stream& stream);

// Restores the weights of an engine and uploads them to its device. All ranks must call this function.
void restore_weights(const RestoreSource& source, Engine& engine, Communicator& world, Stream& stream);

// Restores the optimizer's state. If the checkpoint has no state, or the state of another optimizer, the engine's state
// is not changed and rank 0 logs a warning, also if this engine's optimizer has no state. All ranks must call this
// function.
void restore_state(const RestoreSource& source, const ShardPlan& plan, std::span<const NamedTensor> state,
                   Communicator& world, Stream& stream);

}  // namespace trainctl
