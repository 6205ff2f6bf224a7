// Saving checkpoints and removing old ones.
#include "io/checkpoint/store.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/safetensors.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view step_prefix = "step-";

std::int64_t bytes_of(const std::vector<NamedTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.view.bytes();
  return bytes;
}

Manifest::File write_tensors(const AtomicFolder& folder, const char* name, const std::vector<NamedTensor>& tensors,
                             std::int64_t need) {
  OutputFile file = folder.create(name, need);
  write_safetensors(file, tensors, {{"format", "trainctl"}});
  Manifest::File record{name, file.finish(), {}};
  for (const NamedTensor& tensor : tensors) {
    record.tensors.push_back({tensor.name, tensor.shape, tensor_hash(tensor.view)});
  }
  return record;
}

}  // namespace

std::vector<CheckpointFolder> list_checkpoints(const std::string& run_directory) {
  std::vector<CheckpointFolder> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_directory + "/checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(step_prefix) || entry.is_symlink(error) || !entry.is_directory(error)) continue;
    CheckpointFolder folder{entry.path().string()};
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + step_prefix.size(), end, folder.step).ptr == end) found.push_back(folder);
  }
  return found;
}

CheckpointStore::CheckpointStore(const std::string& run_directory, StorePolicy policy)
    : run_directory_(run_directory), folder_(run_directory + "/checkpoints"), policy_(policy) {
  require(policy.keep >= 1, "at least one checkpoint is kept");
  create_folders(folder_);
  remove_leftovers(folder_);
  for (const CheckpointFolder& checkpoint : list_checkpoints(run_directory_)) {
    try {
      next_sequence_ = std::max(next_sequence_, read_manifest(checkpoint.path).sequence + 1);
    } catch (const Error&) {
      // A damaged one counts for nothing; whoever loads says so.
    }
  }
}

std::string CheckpointStore::save(const Snapshot& snapshot, bool is_best) {
  const std::string name = format("{}{:08}", step_prefix, snapshot.step);
  const std::string path = folder_ + "/" + name;
  const std::int64_t need = bytes_of(snapshot.weights) + (policy_.weights_only ? 0 : bytes_of(snapshot.state));

  Manifest manifest;
  manifest.sequence = next_sequence_;
  manifest.step = snapshot.step;
  manifest.position = snapshot.position;
  manifest.mesh = snapshot.mesh;
  manifest.weights_sha256 = weights_sha256(snapshot.weights);
  manifest.metrics = snapshot.metrics;
  manifest.facts = snapshot.facts;
  AtomicFolder folder(path);
  manifest.files.push_back(write_tensors(folder, weights_file, snapshot.weights, need));
  if (!policy_.weights_only) manifest.files.push_back(write_tensors(folder, state_file, snapshot.state, need));
  {
    const std::string text = to_text(manifest);
    OutputFile file = folder.create(manifest_file, need);
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.finish();
  }
  folder.commit();
  ++next_sequence_;

  replace_link(folder_ + "/last", name);
  if (is_best) replace_link(folder_ + "/best", name);
  prune(snapshot.step);
  return path;
}

void CheckpointStore::prune(std::int64_t saved_step) const {
  std::vector<CheckpointFolder> checkpoints = list_checkpoints(run_directory_);
  const auto rank = [&](const CheckpointFolder& c) { return std::pair(c.step > saved_step, -c.step); };
  std::sort(checkpoints.begin(), checkpoints.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });

  std::error_code error;
  const fs::path best = fs::read_symlink(folder_ + "/best", error).filename();
  for (std::size_t i = static_cast<std::size_t>(policy_.keep); i < checkpoints.size(); ++i) {
    const fs::path path = checkpoints[i].path;
    if (path.filename() == best) continue;
    // Renamed first: a half-removed checkpoint must not bear the name of a whole one.
    const fs::path aside = path.parent_path() / (".partial-old-" + path.filename().string());
    fs::rename(path, aside, error);
    if (!error) fs::remove_all(aside, error);
    if (error) log::warning(format("{}: cannot remove the old checkpoint: {}", path.string(), error.message()));
  }
}

}  // namespace trainctl
