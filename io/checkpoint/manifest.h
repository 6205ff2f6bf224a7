// manifest.json of a checkpoint: what it holds, where the run stood, and the hashes of everything, its own included.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/tensor/extent.h"
#include "core/tensor/shape.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {

// Manifests of more bytes are refused.
inline constexpr std::int64_t largest_manifest = 100'000'000;

// "weights.safetensors"; of several files "weights-00001-of-00004.safetensors". Likewise "state".
std::string file_name(const SnapshotFile& file);

// What a file of such a name holds; nothing for other names.
std::optional<SnapshotContent> content_of(std::string_view file_name);

struct Manifest {
  struct Tensor {
    std::string name;
    Shape shape;               // of the whole tensor
    std::string xxh3;          // of the bytes in the file, 16 hexadecimal digits
    TensorExtent extent = {};  // which part of the tensor is in the file
  };
  struct File {
    std::string name;  // see file_name()
    FileSeal seal;
    std::vector<Tensor> tensors;
  };

  std::int64_t sequence = 0;  // counts the checkpoints of a run directory: the newest has the highest
  std::int64_t step = 0;
  DataPosition position;
  std::vector<int> mesh;       // data, pipeline, tensor
  std::string weights_sha256;  // of format versions 1 and 2; "" in later ones, where the files' hashes stand for it
  std::map<std::string, double> metrics;
  SnapshotMetadata metadata;
  std::optional<BestResult> best;  // of the run, up to this checkpoint
  std::vector<File> files;

  // The files with this content, in the manifest's order.
  std::vector<const File*> files_of(SnapshotContent content) const;
};

// The best result as the manifest and `inspect --json` have it: monitor, mode ("max" or "min"), value and step.
Json to_json(const BestResult& best);

// The JSON of a file's record, as a writer returns it for the manifest, and back. The text is one of to_text()'s.
std::string to_text(const Manifest::File& file);
Manifest::File parse_file_record(const std::string& text);

// JSON that ends with the SHA-256 of everything before it. Format versions 1 and 2 also had the hash of the whole
// weights, and said by their number whether one file held them or several did.
std::string to_text(const Manifest& manifest);

// Throws Error{data}, beginning with `path`, where the text is damaged, holds a number that no run has, or is of a
// newer format.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace trainctl
