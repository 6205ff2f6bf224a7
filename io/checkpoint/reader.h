// Reads and verifies the tensors in a checkpoint's files, and joins tensors whose shards are in several files.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/manifest.h"

namespace trainctl {

// Whole tensors, and the memory that holds their values.
struct StoredTensors {
  std::vector<NamedTensor> tensors;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

// Reads all tensors with this content of the checkpoint in a folder; none if it has no such file. Throws Error{data}
// that names the file that is missing or damaged and the tensor that differs from its hash; or the manifest and the
// tensor if the files hold an element twice or not at all.
StoredTensors read_tensors(const std::string& checkpoint, const Manifest& manifest, SnapshotContent content);

[[noreturn]] void throw_damaged(const std::string& path, const std::string& why);

}  // namespace trainctl
