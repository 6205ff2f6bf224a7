// The metadata of a checkpoint: short texts by name, which are saved with its tensors.
#pragma once

#include <map>
#include <string>

namespace trainctl {

// Each key is defined where its value is written and read: kernel choices and the fingerprint of the data
// (run/training/run_metadata), the names of classes, the inputs, the phase, the shares of replicas, sums of the current
// epoch, and the state of each hook.
using SnapshotMetadata = std::map<std::string, std::string>;

}  // namespace trainctl
