// Loads and verifies checkpoints.
#include "io/checkpoint/load.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/reader.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

// Warns if the name of a checkpoint's folder, such as step-00000020, names another step than its manifest. Other names
// say nothing about the step: a copy may have any name.
void warn_of_name(const std::string& path, std::int64_t step) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(path, ignored);  // also of "." and of a name that ends with a slash
  const std::optional<std::int64_t> named = step_in_name((whole.empty() ? fs::path(path) : whole).filename().string());
  if (!named || *named == step) return;
  log::warning(format("{}: the name of the folder says step {}, but its manifest says step {}, which counts: rename it",
                      path, *named, step));
}

}  // namespace

Manifest read_manifest(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + manifest_file;
  if (!exists(path)) {
    throw Error(ErrorKind::data, SourceLocation{checkpoint},
                exists(checkpoint) ? "not a checkpoint: it has no manifest.json" : "does not exist",
                exists(checkpoint) ? "" : "name the folder of a checkpoint, such as runs/NAME/checkpoints/best");
  }
  return parse_manifest(read_file(path, largest_manifest), path);
}

LoadedCheckpoint load_checkpoint(const std::string& path) {
  LoadedCheckpoint loaded;
  loaded.path = path;
  loaded.manifest = read_manifest(path);
  const Manifest& manifest = loaded.manifest;
  warn_of_name(path, manifest.step);
  loaded.snapshot.step = manifest.step;
  loaded.snapshot.position = manifest.position;
  loaded.snapshot.mesh = manifest.mesh;
  loaded.snapshot.metadata = manifest.metadata;
  loaded.snapshot.metrics = manifest.metrics;
  loaded.snapshot.best = manifest.best;
  if (manifest.files_of(SnapshotContent::weights).empty()) throw_damaged(path, "the manifest lists no weights");
  const auto read = [&](SnapshotContent content) {
    StoredTensors stored = read_tensors(path, manifest, content);
    std::move(stored.memory.begin(), stored.memory.end(), std::back_inserter(loaded.memory));
    return std::move(stored.tensors);
  };
  loaded.snapshot.weights = read(SnapshotContent::weights);
  loaded.snapshot.state = read(SnapshotContent::state);
  if (!manifest.weights_sha256.empty() && weights_sha256(loaded.snapshot.weights) != manifest.weights_sha256) {
    throw_damaged(path, "the hash of the weights differs from weights_sha256");
  }
  return loaded;
}

std::vector<CheckpointFolder> newest_checkpoints_first(const std::string& run_directory) {
  struct Ranked {
    CheckpointFolder folder;
    std::int64_t sequence = std::numeric_limits<std::int64_t>::max();
    bool is_named_rightly = true;

    auto rank() const { return std::tuple(sequence, is_named_rightly, folder.step); }
  };
  std::vector<Ranked> ranked;
  for (const CheckpointFolder& folder : list_checkpoints(run_directory)) {
    Ranked& one = ranked.emplace_back(Ranked{folder});
    try {
      const Manifest manifest = read_manifest(folder.path);
      one.sequence = manifest.sequence;
      one.is_named_rightly = manifest.step == folder.step;
      one.folder.step = manifest.step;
    } catch (const Error& failure) {
      if (failure.kind() != ErrorKind::data) throw;
      // A damaged checkpoint counts as the newest.
    }
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.rank() > b.rank(); });
  std::vector<CheckpointFolder> folders;
  for (Ranked& one : ranked) folders.push_back(std::move(one.folder));
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

std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::string& run_directory, std::int64_t after) {
  for (int attempt = 1;; ++attempt) {
    std::vector<CheckpointFolder> folders = newest_checkpoints_first(run_directory);
    std::erase_if(folders, [after](const CheckpointFolder& folder) { return folder.step <= after; });
    std::size_t gone = 0;
    std::vector<std::string> skipped;
    for (const CheckpointFolder& folder : folders) {
      try {
        std::optional<LoadedCheckpoint> loaded = load_checkpoint(folder.path);
        for (const std::string& message : skipped) log::warning("skipped a checkpoint: " + message);
        return loaded;
      } catch (const Error& failure) {
        if (failure.kind() != ErrorKind::data) throw;
        gone += is_gone(folder.path);
        if (!is_gone(folder.path)) skipped.emplace_back(failure.what());
      }
    }
    if (gone > 0 && attempt < reading_attempts) continue;
    if (folders.empty()) return std::nullopt;
    for (const std::string& message : skipped) log::warning(message);
    throw Error(ErrorKind::data, SourceLocation{run_directory},
                folders.size() == 1 ? "its only checkpoint is not whole"
                                    : format("none of its {} checkpoints is whole", folders.size()),
                "start a new run (--resume never)");
  }
}

std::optional<CheckpointFolder> newest_checkpoint_by_manifest(const std::string& run_directory) {
  for (const CheckpointFolder& folder : newest_checkpoints_first(run_directory)) {
    try {
      read_manifest(folder.path);
      return folder;
    } catch (const Error& failure) {
      if (failure.kind() != ErrorKind::data) throw;
      // The manifest is damaged, or the folder was removed meanwhile.
    }
  }
  return std::nullopt;
}

LoadedCheckpoint load_named_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path + "/checkpoints", ignored)) {
    if (auto newest = load_newest_checkpoint(path)) return std::move(*newest);
    throw Error(ErrorKind::data, SourceLocation{path}, "the run directory holds no checkpoint");
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
