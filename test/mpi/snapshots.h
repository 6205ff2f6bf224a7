// Scenes of snapshots on real ranks, each of which has random parts of some tensors.
#pragma once

#include <string>

#include "core/backend/communicator.h"

namespace trainctl {

// Saves the tensors in parts that depend on the number of ranks.
void save_snapshot(Communicator& world, const std::string& run_directory);

// Makes steps, each with a collective, while a thread saves slowly. Throws if the saved values are not those of the
// saved step.
void train_during_save(Communicator& world);

// Reads the newest checkpoint into the parts of these ranks; throws if a value is wrong.
void restore_snapshot(Communicator& world, const std::string& run_directory);

// Saves twice in a temporary folder, the second time while the last rank can write small files only. Throws the ranks'
// error, or Error{internal} if files of the second checkpoint are left or the ranks throw different errors.
void save_on_full_disk(Communicator& world);

}  // namespace trainctl
