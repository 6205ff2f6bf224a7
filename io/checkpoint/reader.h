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

// Reads all tensors with this content from the checkpoint in a folder. Returns no tensors if the checkpoint has no file
// with this content. Throws Error{data} that names the missing or damaged file, and the tensor if one differs from its
// hash. If an element of a tensor occurs twice or not at all, the error names the manifest and the tensor.
StoredTensors read_tensors(const std::string& checkpoint, const Manifest& manifest, SnapshotContent content);

// Throws Error{data}: the file at `path` is damaged. `why` says what is wrong with it, such as "the file is missing".
[[noreturn]] void throw_damaged(const std::string& path, const std::string& why);

}  // namespace trainctl
