// Loading checkpoints: every hash is verified before anything is used.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/store.h"

namespace trainctl {

// A checkpoint in memory. The snapshot's tensors are whole, however they are stored, and lie in `memory`; its state is
// empty where only weights were kept.
struct LoadedCheckpoint {
  std::string path;
  Manifest manifest;
  Snapshot snapshot;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

// The manifest of a checkpoint's folder, verified by its own hash. Throws Error{data}.
Manifest read_manifest(const std::string& checkpoint);

// Loads and verifies the checkpoint in this folder. Throws Error{data} that names the file, and the tensor where one
// differs.
LoadedCheckpoint load_checkpoint(const std::string& path);

// The newest checkpoint of a run directory that is whole; a damaged one that is passed over is warned about. Nothing
// where there is no checkpoint; Error{data} where there are some and none is whole.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_directory);

// What a user names: a checkpoint's folder, a link to one, or a run directory for its newest whole checkpoint. A link
// that a running trainctl sets anew meanwhile is followed again. Throws Error{data}, also where there is none.
LoadedCheckpoint load_named_checkpoint(const std::string& path);

// How often a checkpoint is looked for again that a running trainctl has removed meanwhile.
inline constexpr int reading_attempts = 100;

// Whether there is nothing of this name.
bool is_gone(const std::string& path);

// What a link leads to now; the path itself where it is none.
std::string followed(const std::string& path);

// The checkpoint folders of a run directory, newest first. One without a readable manifest counts as newest, so that it
// is not passed over in silence.
std::vector<CheckpointFolder> newest_checkpoints_first(const std::string& run_directory);

}  // namespace trainctl
