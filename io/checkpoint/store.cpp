// Commits checkpoints and removes old ones.
#include "io/checkpoint/store.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/temporary_name.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view step_prefix = "step-";

std::string name_of_step(std::int64_t step) { return format("{}{:08}", step_prefix, step); }

}  // namespace

std::vector<CheckpointFolder> list_checkpoints(const std::string& run_directory) {
  std::vector<CheckpointFolder> found;
  const std::string parent = run_directory + "/checkpoints";
  if (!exists(parent)) return found;
  for (const auto& [name, type] : list_folder(parent)) {
    CheckpointFolder folder{parent + "/" + name};
    const char* end = name.data() + name.size();
    const bool is_named =
        name.starts_with(step_prefix) && std::from_chars(name.data() + step_prefix.size(), end, folder.step).ptr == end;
    if (is_named && type == FileType::folder) found.push_back(folder);
  }
  return found;
}

CheckpointStore::CheckpointStore(const std::string& run_directory, StorePolicy policy,
                                 std::function<void()> require_current)
    : run_directory_(run_directory),
      folder_(run_directory + "/checkpoints"),
      policy_(policy),
      require_current_(std::move(require_current)) {
  require(policy.keep >= 1, "keep is less than 1");
  create_folders(folder_);
  remove_leftovers(folder_);
  std::optional<Manifest> newest;
  for (const CheckpointFolder& checkpoint : list_checkpoints(run_directory_)) {
    try {
      Manifest manifest = read_manifest(checkpoint.path);
      if (manifest.step == checkpoint.step && (!newest || manifest.sequence > newest->sequence)) {
        newest = std::move(manifest);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      // A damaged checkpoint is ignored here; loading it reports the damage.
    }
  }
  if (!newest) return;
  next_sequence_ = newest->sequence + 1;
  update_links_and_prune(newest->step, newest->best);
}

SnapshotTarget CheckpointStore::begin(std::int64_t step, std::int64_t bytes) {
  pending_target_.path = folder_ + "/" + name_of_step(step);
  pending_target_.bytes = bytes;
  abandon();
  pending_ = std::make_unique<AtomicFolder>(pending_target_.path);
  pending_target_.address = fs::absolute(pending_->temporary()).string();
  return pending_target_;
}

std::string CheckpointStore::commit(const Snapshot& snapshot, std::span<const std::string> files) {
  require(pending_ != nullptr, "a checkpoint is committed that was not begun");
  const std::unique_ptr<AtomicFolder> folder = std::move(pending_);
  Manifest manifest;
  manifest.sequence = next_sequence_;
  manifest.step = snapshot.step;
  manifest.position = snapshot.position;
  manifest.mesh = snapshot.mesh;
  manifest.metrics = snapshot.metrics;
  manifest.metadata = snapshot.metadata;
  manifest.best = snapshot.best;
  for (const std::string& file : files) manifest.files.push_back(parse_file_record(file));
  {
    const std::string text = to_text(manifest);
    OutputFile file(pending_target_.address + "/" + manifest_file, pending_target_.path, pending_target_.bytes);
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.finish();
  }
  if (require_current_) require_current_();
  folder->commit();
  ++next_sequence_;
  update_links_and_prune(manifest.step, manifest.best);
  return pending_target_.path;
}

void CheckpointStore::update_links_and_prune(std::int64_t last_step, const std::optional<BestResult>& best) const {
  const auto best_step = best ? std::optional(best->step) : std::nullopt;
  link("last", last_step);
  link("best", best_step);
  prune(last_step, best_step);
}

// Sets the link to the step's checkpoint, or removes it if this directory has no such checkpoint: the run may have
// resumed from another directory.
void CheckpointStore::link(const std::string& name, const std::optional<std::int64_t>& step) const {
  const std::string path = folder_ + "/" + name;
  std::error_code error;
  const fs::path present_target = fs::read_symlink(path, error);
  const std::string target = step ? name_of_step(*step) : "";
  const bool is_here = step && fs::status(folder_ + "/" + target, error).type() != fs::file_type::not_found;
  if (!is_here) fs::remove(path, error);
  if (is_here && present_target != target) replace_link(path, target);
}

void CheckpointStore::prune(std::int64_t last_step, const std::optional<std::int64_t>& best_step) const {
  std::vector<CheckpointFolder> checkpoints = list_checkpoints(run_directory_);
  const auto rank = [&](const CheckpointFolder& c) { return std::pair(c.step > last_step, -c.step); };
  std::sort(checkpoints.begin(), checkpoints.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (std::size_t i = static_cast<std::size_t>(policy_.keep); i < checkpoints.size(); ++i) {
    if (checkpoints[i].step == best_step) continue;
    // The folder is renamed first, so that a partly removed checkpoint does not have the name of a whole one.
    const fs::path path = checkpoints[i].path;
    const fs::path renamed = path.parent_path() / (".partial-old-" + path.filename().string());
    std::error_code error;
    fs::rename(path, renamed, error);
    if (!error) fs::remove_all(renamed, error);
    if (error) log::warning(format("{}: cannot remove the old checkpoint: {}", path.string(), error.message()));
  }
}

std::string FolderSink::write(const SnapshotTarget& target, const SnapshotFile& file,
                              std::span<const NamedTensor> shards) {
  const std::string name = file_name(file);
  OutputFile output(target.address + "/" + name, target.path, target.bytes);
  write_safetensors(output, shards, {{"format", "trainctl"}});
  Manifest::File record{name, output.finish(), {}};
  for (const NamedTensor& shard : shards) {
    record.tensors.push_back({shard.name, shard.shape, tensor_hash(shard.view), shard.extent});
  }
  return to_text(record);
}

std::string tensor_hash(const View& view) {
  return format("{:016x}", xxh3(view.data, static_cast<std::size_t>(view.bytes())));
}

}  // namespace trainctl
