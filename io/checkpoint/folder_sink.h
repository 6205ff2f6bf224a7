// The sink that writes the files of a checkpoint into its folder.
#pragma once

#include <span>
#include <string>

#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

// Writes safetensors files, each to the disk before it returns. A part has its own shape in the file (a range of a
// flattened tensor is a vector); the manifest says which part of the tensor it is.
class FolderSink final : public SnapshotSink {
 public:
  // Returns the file's record for the manifest: see to_text(const Manifest::File&).
  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> parts) override;
};

// The hash of a part's bytes as manifests hold it: XXH3, 16 hexadecimal digits.
std::string tensor_hash(const View& view);

}  // namespace trainctl
