// Reading checkpoints and verifying them.
#include "io/checkpoint/load.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "io/checkpoint/safetensors.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr const char* damaged_remedy = "--resume auto takes the newest whole one";

[[noreturn]] void throw_damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::data, Place{path}, "the checkpoint is damaged: " + why, damaged_remedy);
}

// The tensors of a file as views of `data`, compared with what the manifest says of each.
std::vector<NamedTensor> verify(const std::string& path, const Manifest::File& record, const SafetensorsFile& file,
                                const FileSeal& seal, std::byte* data) {
  std::vector<NamedTensor> tensors;
  for (const Manifest::Tensor& expected : record.tensors) {
    const StoredTensor* stored = file.header().find(expected.name);
    if (!stored || stored->shape != expected.shape || stored->dtype != DType::float32) {
      throw_damaged(path, "tensor '" + expected.name + "' is not as the manifest says");
    }
    tensors.push_back({stored->name, stored->shape, {data + stored->begin, stored->dtype, stored->shape.count()}});
    if (tensor_hash(tensors.back().view) != expected.xxh3) {
      throw_damaged(path, "tensor '" + expected.name + "' differs from its hash");
    }
  }
  if (seal != record.seal) throw_damaged(path, "it differs from its SHA-256");
  return tensors;
}

std::vector<NamedTensor> load_file(const std::string& path, const Manifest::File& record, LoadedCheckpoint& loaded) {
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (!error && bytes != record.seal.bytes) {
    throw_damaged(path, format("it has {} bytes instead of {}", bytes, record.seal.bytes));
  }
  const SafetensorsFile file(path);
  loaded.memory.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(file.data_bytes())));
  std::byte* data = loaded.memory.back().get();
  const FileSeal seal = file.read_all(data);
  return verify(path, record, file, seal, data);
}

}  // namespace

std::string tensor_hash(const View& view) {
  return format("{:016x}", xxh3(view.data, static_cast<std::size_t>(view.bytes())));
}

Manifest read_manifest(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + manifest_file;
  if (!exists(path)) throw Error(ErrorKind::data, Place{checkpoint}, "not a checkpoint: it has no manifest.json");
  return parse_manifest(read_file(path, largest_manifest), path);
}

LoadedCheckpoint load_checkpoint(const std::string& path) {
  LoadedCheckpoint loaded;
  loaded.path = path;
  loaded.manifest = read_manifest(path);
  const Manifest& manifest = loaded.manifest;
  loaded.snapshot.step = manifest.step;
  loaded.snapshot.position = manifest.position;
  loaded.snapshot.mesh = manifest.mesh;
  loaded.snapshot.facts = manifest.facts;
  loaded.snapshot.metrics = manifest.metrics;
  loaded.snapshot.best = manifest.best;
  const Manifest::File* weights = manifest.find(weights_file);
  if (!weights) throw_damaged(path, "the manifest names no weights");
  loaded.snapshot.weights = load_file(path + "/" + weights_file, *weights, loaded);
  if (const Manifest::File* state = manifest.find(state_file)) {
    loaded.snapshot.state = load_file(path + "/" + state_file, *state, loaded);
  }
  if (weights_sha256(loaded.snapshot.weights) != manifest.weights_sha256) {
    throw_damaged(path, "the weights differ from weights_sha256");
  }
  return loaded;
}

std::vector<CheckpointFolder> newest_checkpoints_first(const std::string& run_directory) {
  std::vector<std::pair<std::int64_t, CheckpointFolder>> ranked;
  for (const CheckpointFolder& folder : list_checkpoints(run_directory)) {
    std::int64_t sequence = std::numeric_limits<std::int64_t>::max();
    try {
      sequence = read_manifest(folder.path).sequence;
    } catch (const Error& failure) {
      if (failure.kind() != ErrorKind::data) throw;
      // Counts as newest.
    }
    ranked.push_back({sequence, folder});
  }
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.step) > std::pair(b.first, b.second.step);
  });
  std::vector<CheckpointFolder> folders;
  for (auto& [sequence, folder] : ranked) folders.push_back(std::move(folder));
  return folders;
}

bool is_gone(const std::string& path) {
  std::error_code ignored;
  return fs::status(path, ignored).type() == fs::file_type::not_found;
}

std::string followed(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? path : (fs::path(path).parent_path() / target).string();
}

std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_directory) {
  for (int attempt = 1;; ++attempt) {
    const std::vector<CheckpointFolder> folders = newest_checkpoints_first(run_directory);
    std::size_t gone = 0;
    std::vector<std::string> passed_over;
    for (const CheckpointFolder& folder : folders) {
      try {
        std::optional<LoadedCheckpoint> loaded = load_checkpoint(folder.path);
        for (const std::string& what : passed_over) log::warning("passed over: " + what);
        return loaded;
      } catch (const Error& failure) {
        if (failure.kind() != ErrorKind::data) throw;
        gone += is_gone(folder.path);
        if (!is_gone(folder.path)) passed_over.emplace_back(failure.what());
      }
    }
    if (gone > 0 && attempt < reading_attempts) continue;
    if (folders.empty()) return std::nullopt;
    for (const std::string& what : passed_over) log::warning(what);
    throw Error(ErrorKind::data, Place{run_directory}, format("none of its {} checkpoints is whole", folders.size()),
                "start anew (--resume never)");
  }
}

LoadedCheckpoint load_named_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path + "/checkpoints", ignored)) {
    if (auto newest = load_newest_checkpoint(path)) return std::move(*newest);
    throw Error(ErrorKind::data, Place{path}, "the run directory holds no checkpoint");
  }
  for (int attempt = 1;; ++attempt) {
    const std::string folder = followed(path);
    try {
      return load_checkpoint(folder);
    } catch (const Error&) {
      if (attempt == reading_attempts || followed(path) == folder) throw;
    }
  }
}

}  // namespace trainctl
