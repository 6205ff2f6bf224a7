// Checkpoints of a run directory: checkpoints/step-00001234/, the links `last` and `best`, and how many are kept.
//
// The links follow from the manifests: `last` is the newest checkpoint, `best` the one of the step that the newest
// names as its run's best. A writer that is killed between a checkpoint and its links leaves old ones; the next one
// mends them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/manifest.h"

namespace trainctl {

inline constexpr const char* weights_file = "weights.safetensors";
inline constexpr const char* state_file = "state.safetensors";
inline constexpr const char* manifest_file = "manifest.json";

// A folder checkpoints/step-N, whole by its name; whether its contents are is for load_checkpoint to say.
struct CheckpointFolder {
  std::string path;
  std::int64_t step = 0;
};

// The checkpoint folders of a run directory, in no order; none where it has none. Throws Error{data} where that cannot
// be known.
std::vector<CheckpointFolder> list_checkpoints(const std::string& run_directory);

// The sink that writes the files of a checkpoint into its folder: safetensors files, each to the disk before it
// returns. A part has its own shape in the file (a range of a flattened tensor is a vector); the manifest says which
// part of the tensor it is.
class FolderSink final : public SnapshotSink {
 public:
  // Returns the file's record for the manifest: see to_text(const Manifest::File&).
  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> parts) override;
};

// The hash of a part's bytes as manifests hold it: XXH3, 16 hexadecimal digits.
std::string tensor_hash(const View& view);

struct StorePolicy {
  int keep = 3;  // newest checkpoints that stay, beside the best one
};

// The one keeper of a run directory's checkpoints (whoever holds its lock).
class CheckpointStore final : public SnapshotStore {
 public:
  // Creates the folder, removes what a killed writer left, mends links and removes what is beyond `keep`. Throws
  // Error{resource}, and Error{data} where what is there cannot be read.
  CheckpointStore(const std::string& run_directory, StorePolicy policy);

  SnapshotTarget begin(std::int64_t step, std::int64_t bytes) override;
  void abandon() override { begun_.reset(); }
  // `files` are the records that FolderSink returned. Afterwards `last` points at the checkpoint, `best` at the
  // best one where that is here, and older ones beyond `keep` are gone. What is of a later step (the run went back to
  // an earlier one) goes before older ones do.
  std::string commit(const Snapshot& snapshot, std::span<const std::string> files) override;

 private:
  void settle(std::int64_t last_step, const std::optional<BestResult>& best) const;
  void link(const std::string& name, const std::optional<std::int64_t>& step) const;
  void prune(std::int64_t last_step, const std::optional<std::int64_t>& best_step) const;

  std::string run_directory_;
  std::string folder_;
  StorePolicy policy_;
  std::int64_t next_sequence_ = 1;
  SnapshotTarget target_;                // of the checkpoint that was begun
  std::unique_ptr<AtomicFolder> begun_;  // null: none is under way
};

}  // namespace trainctl
