// Reading the tensors of a checkpoint's files: verified, and put together where several files hold parts of them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "io/checkpoint/manifest.h"

namespace trainctl {

// Whole tensors, and the memory in which they lie.
struct StoredTensors {
  std::vector<NamedTensor> tensors;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

// All tensors with this content of the checkpoint in a folder; none where it has no such file. Throws Error{data} that
// names the file that is missing or damaged, and the tensor where one differs; or the manifest and the tensor where the
// files hold an element twice or not at all.
StoredTensors read_tensors(const std::string& checkpoint, const Manifest& manifest, SnapshotContent content);

[[noreturn]] void throw_damaged(const std::string& path, const std::string& why);

}  // namespace trainctl
