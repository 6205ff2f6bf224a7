// Reads and verifies a checkpoint's tensors.
#include "io/checkpoint/reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/store.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

using Files = std::vector<const Manifest::File*>;

// The shards of a tensor as the manifest lists them.
struct ListedTensor {
  Shape shape;
  std::vector<TensorExtent> extents;
  std::vector<const std::string*> files;  // names of the files that hold the shards
};

std::unique_ptr<std::byte[]> allocate(std::int64_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

// Compares the sizes in the manifest with the file's size on the disk, so that a wrong manifest cannot cause a large
// allocation.
void check_size(const std::string& path, const Manifest::File& record) {
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error == std::errc::no_such_file_or_directory) throw_damaged(path, "the file is missing");
  if (!error && bytes != record.seal.bytes) {
    throw_damaged(path, format("it has {} bytes instead of {}", bytes, record.seal.bytes));
  }
  std::int64_t claimed = 0;
  for (const Manifest::Tensor& tensor : record.tensors) {
    claimed += tensor.extent.count(tensor.shape) * size_of(DType::float32);
    if (claimed > record.seal.bytes) throw_damaged(path, "it is too short for the tensors that the manifest names");
  }
}

// Lists the tensors in bytewise order of their names. Each element must be in exactly one shard.
std::map<std::string, ListedTensor> list_tensors(const std::string& checkpoint, const Files& files) {
  std::map<std::string, ListedTensor> tensors;
  const std::string manifest = checkpoint + "/manifest.json";
  for (const Manifest::File* file : files) {
    for (const Manifest::Tensor& tensor : file->tensors) {
      ListedTensor& listed = tensors[tensor.name];
      if (!listed.files.empty() && listed.shape != tensor.shape) {
        throw_damaged(manifest, format("tensor '{}' is {} in {} and {} in {}", tensor.name, to_string(listed.shape),
                                       *listed.files[0], to_string(tensor.shape), file->name));
      }
      listed.shape = tensor.shape;
      listed.extents.push_back(tensor.extent);
      listed.files.push_back(&file->name);
    }
  }
  for (const auto& [name, tensor] : tensors) {
    const auto problem = find_coverage_problem(tensor.shape, tensor.extents);
    if (!problem) continue;
    const std::string what = format("element {} of tensor '{}' is in ", problem->element, name);
    throw_damaged(manifest, problem->in_none ? what + "none of its files"
                                             : format("{}{} and in {}", what, *tensor.files[problem->first],
                                                      *tensor.files[problem->second]));
  }
  return tensors;
}

// Reads a file into `data`, compares its shards with the manifest, and returns them as views of `data`.
std::vector<NamedTensor> read_shards(const std::string& path, const Manifest::File& record, const SafetensorsFile& file,
                                     std::byte* data) {
  const FileSeal seal = file.read_all(data);
  std::vector<NamedTensor> shards;
  for (const Manifest::Tensor& expected : record.tensors) {
    const StoredTensor* stored = file.header().find(expected.name);
    if (!stored || stored->shape != expected.extent.shape(expected.shape) || stored->dtype != DType::float32) {
      throw_damaged(path, "tensor '" + expected.name + "' has another shape or dtype than in the manifest");
    }
    const View view{data + stored->begin, stored->dtype, stored->shape.count()};
    if (tensor_hash(view) != expected.xxh3) {
      throw_damaged(path, "tensor '" + expected.name + "' differs from its hash");
    }
    shards.push_back({stored->name, expected.shape, view, expected.extent});
  }
  if (seal != record.seal) throw_damaged(path, "it differs from its SHA-256");
  return shards;
}

}  // namespace

void throw_damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::data, SourceLocation{path}, "the checkpoint is damaged: " + why,
              "--resume auto uses the newest whole checkpoint; to other commands, name the folder of an older one");
}

StoredTensors read_tensors(const std::string& checkpoint, const Manifest& manifest, SnapshotContent content) {
  const Files files = manifest.files_of(content);
  for (const Manifest::File* record : files) check_size(checkpoint + "/" + record->name, *record);
  const std::map<std::string, ListedTensor> listed = list_tensors(checkpoint, files);

  StoredTensors stored;
  for (const Manifest::File* record : files) {
    const std::string path = checkpoint + "/" + record->name;
    const SafetensorsFile file(path);
    std::unique_ptr<std::byte[]> data = allocate(file.data_bytes());
    std::vector<NamedTensor> shards = read_shards(path, *record, file, data.get());
    if (files.size() == 1) {  // the tensors are whole: no copy is needed
      stored.tensors = std::move(shards);
      stored.memory.push_back(std::move(data));
      break;
    }
    if (stored.tensors.empty()) {
      for (const auto& [name, tensor] : listed) {
        const std::int64_t count = tensor.shape.count();
        stored.memory.push_back(allocate(count * size_of(DType::float32)));
        stored.tensors.push_back({name, tensor.shape, {stored.memory.back().get(), DType::float32, count}});
      }
    }
    const auto whole = by_name(stored.tensors);
    for (const NamedTensor& shard : shards) {
      const NamedTensor& tensor = *whole.at(shard.name);
      copy_common(tensor.shape, shard.extent, shard.view, tensor.extent, tensor.view);
    }
  }
  return stored;
}

}  // namespace trainctl
