// From a checkpoint on rank 0's disk into the engines of all ranks.
#pragma once

#include <optional>

#include "core/backend/communicator.h"
#include "core/exec/engine.h"
#include "io/checkpoint/load.h"

namespace trainctl {

// Copies a checkpoint's tensors by name. Throws Error{config} that names the checkpoint, the config and the tensors
// that differ when it is of another model. A checkpoint without optimizer state leaves the state as it is and says so.
void restore(const LoadedCheckpoint& checkpoint, const std::vector<NamedTensor>& weights,
             const std::vector<NamedTensor>& state, const std::string& config_file);

// Step, position, facts, metrics and best value of rank 0's snapshot on every rank; tensors stay where they are.
// Nothing where rank 0 has none.
std::optional<Snapshot> broadcast_position(const std::optional<Snapshot>& mine, Communicator& world, Stream& stream);

// Rank 0's weights and state on every rank, in the host's copies of the engine.
void broadcast_tensors(const Engine& engine, Communicator& world, Stream& stream);

}  // namespace trainctl
