// Manages the checkpoints of a run directory: folders checkpoints/step-00001234/, the links `last` and `best`, and the
// number of checkpoints that are kept.
//
// The links follow from the manifests: `last` points at the newest checkpoint, `best` at the checkpoint of the step
// that the newest manifest names as the best of the run. A writer that is killed after a checkpoint and before its
// links leaves old links, which the next writer corrects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/read_back.h"

namespace trainctl {

// The names of a checkpoint's files, if its weights and its state are in one file each.
inline constexpr const char* weights_file = "weights.safetensors";
inline constexpr const char* state_file = "state.safetensors";
inline constexpr const char* manifest_file = "manifest.json";

// A folder checkpoints/step-N. Its name tells that it was completed; load_checkpoint() verifies its contents.
struct CheckpointFolder {
  std::string path;
  std::int64_t step = 0;
};

// Returns the step in the name of a checkpoint's folder, such as step-00000020; no value for other names.
std::optional<std::int64_t> step_in_name(const std::string& name);

// Returns the checkpoint folders of a run directory in no particular order. Throws Error{data} if the directory cannot
// be read.
std::vector<CheckpointFolder> list_checkpoints(const std::string& run_directory);

// Where the folders of checkpoints are. Files on a disk are read again after they were written, and compared with the
// memory that they were written from. Shared memory has no disk that could lose them.
enum class Storage { disk, shared_memory };

// Writes the files of a checkpoint into its folder as safetensors files. When write() returns, the file is in the
// storage and was verified. A shard has its own shape in the file (a range of a flattened tensor is a vector); the
// manifest records its extent in the tensor.
class FolderSink final : public SnapshotSink {
 public:
  explicit FolderSink(Storage storage = Storage::disk) : storage_(storage) {}

  // Returns the file's record in the manifest: see FileRecord.
  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> shards) override;

 private:
  Storage storage_;
  FileVerifier verifier_;
};

// Returns the hash of a shard's bytes as in manifests: XXH3, 16 hexadecimal digits.
std::string tensor_hash(const View& view);

struct StorePolicy {
  int keep = 3;  // number of newest checkpoints that are kept, in addition to the best one
  // Throws if this process may not write in the directory any more; called before a checkpoint gets its name.
  std::function<void()> require_current = {};
  Storage storage = Storage::disk;
};

// Adds and removes checkpoints of a run directory. Only the process that holds the directory's lock may create a store.
class CheckpointStore final : public SnapshotStore {
 public:
  // Creates the folder, removes leftovers of a killed writer, and corrects the links. `resumed_from`: the path of the
  // checkpoint that the run goes on from, whose hashes were verified when it was loaded; "" if there is none. If it is
  // in this directory, it counts as the newest, and checkpoints of earlier steps beyond `keep` are removed. Throws
  // Error{resource}, and Error{data} if an existing checkpoint cannot be read.
  CheckpointStore(const std::string& run_directory, StorePolicy policy, const std::string& resumed_from = "");

  SnapshotTarget begin(std::int64_t step, std::int64_t bytes) override;
  void abandon() override { pending_.reset(); }
  // `files` are the records that FolderSink returned, whose files were verified; the manifest is verified here. Only
  // then does `last` point at the checkpoint, `best` at the best checkpoint in this directory, and are checkpoints
  // beyond `keep` removed: first checkpoints of later steps, if the run went back to an earlier step, then the oldest.
  // If the best checkpoint could not be written, `best` stays at the one before.
  std::string commit(const Snapshot& snapshot, std::span<const std::string> files) override;
  // Whether this directory has a checkpoint of the step.
  bool has(std::int64_t step) const;
  // Removes all checkpoints.
  void clear();

 private:
  std::optional<std::int64_t> best_step_here(const std::optional<BestResult>& best) const;
  void update_links(std::int64_t last_step, const std::optional<std::int64_t>& best_step) const;
  void link(const std::string& name, const std::optional<std::int64_t>& step) const;
  void prune(std::int64_t last_step, const std::optional<std::int64_t>& best_step, bool later_steps) const;

  std::string run_directory_;
  std::string folder_;
  StorePolicy policy_;
  std::int64_t next_sequence_ = 1;
  FileVerifier verifier_;
  SnapshotTarget pending_target_;          // target of the pending checkpoint
  std::unique_ptr<AtomicFolder> pending_;  // the checkpoint that is being written; null if there is none
};

}  // namespace trainctl
