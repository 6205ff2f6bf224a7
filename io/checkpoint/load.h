// Loads checkpoints; every hash is verified before a value is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/store.h"

namespace trainctl {

// A checkpoint in memory. The snapshot's tensors are whole, even if several files hold their shards, and point into
// `memory`. The state is empty if only weights were saved.
struct LoadedCheckpoint {
  std::string path;
  Manifest manifest;
  Snapshot snapshot;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

// Reads the manifest in a checkpoint's folder and verifies its hash. Throws Error{data}.
Manifest read_manifest(const std::string& checkpoint);

// Loads and verifies the checkpoint in this folder. Throws Error{data} that names the damaged file, and the tensor if
// one differs from its hash. Logs a warning if the folder's name says another step than the manifest, whose step
// counts.
LoadedCheckpoint load_checkpoint(const std::string& path);

// Loads the newest whole checkpoint of a run directory, and logs a warning for each damaged one that it skips. Only
// checkpoints of steps after `after` count. Returns no value if there is no checkpoint; throws Error{data} if there are
// checkpoints and none is whole.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_directory, std::int64_t after = -1);

// Returns the newest checkpoint of a run directory whose manifest is readable; no value if there is none. Reads no
// tensors: the checkpoint may be damaged.
std::optional<CheckpointFolder> newest_checkpoint_by_manifest(const std::string& run_directory);

// Loads the checkpoint that a user names: `path` is a checkpoint's folder, a link to such a folder, or a run directory,
// whose newest whole checkpoint is loaded. If a running trainctl changes the link meanwhile, its new target is loaded.
// Throws Error{data} if the checkpoint is damaged or does not exist.
LoadedCheckpoint load_named_checkpoint(const std::string& path);

// Number of attempts to read a checkpoint while a running trainctl removes old ones.
inline constexpr int reading_attempts = 100;

// Whether no file or folder has this name.
bool is_gone(const std::string& path);

// Returns the present target of a link, or the path itself if it is not a link.
std::string followed(const std::string& path);

// Returns the checkpoint folders of a run directory, the newest first. A folder without a readable manifest counts as
// the newest, so that the damage is reported when the checkpoint is loaded. The steps are those of the manifests. Of
// two folders with the same manifest, the one that is named by its step comes first.
std::vector<CheckpointFolder> newest_checkpoints_first(const std::string& run_directory);

}  // namespace trainctl
