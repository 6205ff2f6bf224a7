// manifest.json of a checkpoint: its files and tensors, the position of the run, and all hashes, including the
// manifest's own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/tensor/extent.h"
#include "core/tensor/shape.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {

// Largest manifest that is read, in bytes.
inline constexpr std::int64_t largest_manifest = 100'000'000;

// Returns "weights.safetensors" for a single file, "weights-00001-of-00004.safetensors" for one of several; for the
// optimizer's state the names begin with "state".
std::string file_name(const SnapshotFile& file);

// Returns the content of the file with such a name; no value for other names.
std::optional<SnapshotContent> content_of(std::string_view file_name);

struct Manifest {
  struct Tensor {
    std::string name;
    Shape shape;               // shape of the whole tensor
    std::string xxh3;          // hash of the bytes in the file, 16 hexadecimal digits
    TensorExtent extent = {};  // the shard of the tensor that is in the file
  };
  struct File {
    std::string name;  // see file_name()
    FileSeal seal;
    std::vector<Tensor> tensors;
  };

  std::int64_t sequence = 0;  // number of the checkpoint in its run directory; the newest has the highest
  std::int64_t step = 0;
  DataPosition position;
  std::vector<int> mesh;       // numbers of ranks along the axes data, pipeline, tensor
  std::string weights_sha256;  // only in format versions 1 and 2; "" in later versions, which hash each file
  std::map<std::string, double> metrics;
  SnapshotMetadata metadata;
  std::optional<BestResult> best;  // best result of the run up to this checkpoint
  std::vector<File> files;

  // The files with this content, in the manifest's order.
  std::vector<const File*> files_of(SnapshotContent content) const;
};

// Returns the best result as in the manifest and `inspect --json`: monitor, mode ("max" or "min"), value and step.
Json to_json(const BestResult& best);

// Writes what the manifest says of one file, tensor by tensor. It is a part of the manifest's text, so that a
// checkpoint of many tensors is neither built as values nor parsed again while training continues.
class FileRecord {
 public:
  // `extent`: the shard that is in the file; `xxh3`: the hash of its bytes.
  void add(std::string_view name, const Shape& shape, const TensorExtent& extent, std::string_view xxh3);
  // Returns the name and the value of a member of the manifest's object `files`. The record must not be used
  // afterwards.
  std::string finish(std::string_view file_name, const FileSeal& seal);

 private:
  std::string tensors_;
};

// Returns JSON that ends with the SHA-256 of everything before it. `files`: the records of the manifest's files, whose
// own list is not read. Format versions 1 (one file) and 2 (several files) also had the hash of all weights together.
std::string to_text(const Manifest& manifest, std::span<const std::string> files);

// Throws Error{data}, beginning with `path`, if the text is damaged, has a number that is out of range, or has a newer
// format version.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace trainctl
