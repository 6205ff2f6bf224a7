// manifest.json of a checkpoint: what it holds, where the run stood, and the hashes of everything, its own included.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/tensor/shape.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {

// Manifests of more bytes are refused.
inline constexpr std::int64_t largest_manifest = 100'000'000;

struct Manifest {
  struct Tensor {
    std::string name;
    Shape shape;
    std::string xxh3;  // of its bytes, 16 hexadecimal digits
  };
  struct File {
    std::string name;  // "weights.safetensors", "state.safetensors"
    FileSeal seal;
    std::vector<Tensor> tensors;
  };

  std::int64_t sequence = 0;  // counts the checkpoints of a run directory: the newest has the highest
  std::int64_t step = 0;
  DataPosition position;
  std::vector<int> mesh;  // data, pipeline, tensor
  std::string weights_sha256;
  std::map<std::string, double> metrics;
  std::map<std::string, std::string> facts;
  std::optional<BestResult> best;  // of the run, up to this checkpoint
  std::vector<File> files;

  // Null where the checkpoint has no such file.
  const File* find(std::string_view file) const;
};

// JSON that ends with the SHA-256 of everything before it.
std::string to_text(const Manifest& manifest);

// Throws Error{data}, beginning with `path`, where the text is damaged, holds a number that no run has, or is of a
// newer format.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace trainctl
