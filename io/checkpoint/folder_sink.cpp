// One file, with the hashes of what is in it.
#include "io/checkpoint/folder_sink.h"

#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/safetensors.h"

namespace trainctl {

std::string FolderSink::write(const SnapshotTarget& target, const SnapshotFile& file,
                              std::span<const NamedTensor> parts) {
  const std::string name = file_name(file);
  OutputFile output(target.place + "/" + name, target.path, target.bytes);
  write_safetensors(output, parts, {{"format", "trainctl"}});
  Manifest::File record{name, output.finish(), {}};
  for (const NamedTensor& part : parts) {
    record.tensors.push_back({part.name, part.shape, tensor_hash(part.view), part.extent});
  }
  return to_text(record);
}

std::string tensor_hash(const View& view) {
  return format("{:016x}", xxh3(view.data, static_cast<std::size_t>(view.bytes())));
}

}  // namespace trainctl
