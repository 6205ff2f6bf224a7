// Scenes of snapshots on real ranks: each holds random parts of some tensors.
#pragma once

#include <string>

#include "core/backend/communicator.h"

namespace trainctl {

// Saves in parts, which the number of ranks decides.
void save_snapshot(Communicator& world, const std::string& run_directory);

// Makes steps, each with a collective, while a thread saves slowly; throws if what is saved is not of its own step.
void train_during_save(Communicator& world);

// Reads the newest checkpoint into the parts of these ranks; throws where a value is wrong.
void restore_snapshot(Communicator& world, const std::string& run_directory);

// Saves twice in a temporary folder, the second time while the last rank can write small files only. Throws what the
// ranks throw then, and Error{internal} where something of the second checkpoint is left, or the ranks throw different
// things.
void save_on_full_disk(Communicator& world);

}  // namespace trainctl
