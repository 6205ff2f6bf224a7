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

// The folder is renamed first, so that a partly removed checkpoint does not have the name of a whole one.
void remove_checkpoint(const fs::path& path) {
  const fs::path renamed = path.parent_path() / (".partial-old-" + path.filename().string());
  std::error_code error;
  fs::rename(path, renamed, error);
  if (!error) fs::remove_all(renamed, error);
  if (error) log::warning(format("{}: cannot remove the old checkpoint: {}", path.string(), error.message()));
}

// Returns the memory of the shards in their order; shards that follow each other in memory, as in a staged copy, are
// one piece.
std::vector<FilePiece> pieces_of(std::span<const NamedTensor> shards) {
  std::vector<FilePiece> pieces;
  for (const NamedTensor& shard : shards) {
    const FilePiece own{shard.view.as<const std::byte>(), static_cast<std::size_t>(shard.view.bytes())};
    if (!pieces.empty() && pieces.back().data() + pieces.back().size() == own.data()) {
      pieces.back() = {pieces.back().data(), pieces.back().size() + own.size()};
    } else {
      pieces.push_back(own);
    }
  }
  return pieces;
}

FileUse use_of(Storage storage) { return storage == Storage::disk ? FileUse::checkpoint : FileUse::shared_memory; }

}  // namespace

std::optional<std::int64_t> step_in_name(const std::string& name) {
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  const bool is_named =
      name.starts_with(step_prefix) && std::from_chars(name.data() + step_prefix.size(), end, step).ptr == end;
  return is_named ? std::optional(step) : std::nullopt;
}

std::vector<CheckpointFolder> list_checkpoints(const std::string& run_directory) {
  std::vector<CheckpointFolder> found;
  const std::string parent = run_directory + "/checkpoints";
  if (!exists(parent)) return found;
  for (const auto& [name, type] : list_folder(parent)) {
    const std::optional<std::int64_t> step = step_in_name(name);
    if (step && type == FileType::folder) found.push_back({parent + "/" + name, *step});
  }
  return found;
}

CheckpointStore::CheckpointStore(const std::string& run_directory, StorePolicy policy, const std::string& resumed_from)
    : run_directory_(run_directory), folder_(run_directory + "/checkpoints"), policy_(std::move(policy)) {
  require(policy_.keep >= 1, "keep is less than 1");
  create_folders(folder_);
  remove_leftovers(folder_);
  std::optional<Manifest> newest;
  bool is_verified = false;  // whether `newest` is the checkpoint that the run goes on from
  for (const CheckpointFolder& checkpoint : list_checkpoints(run_directory_)) {
    try {
      Manifest manifest = read_manifest(checkpoint.path);
      next_sequence_ = std::max(next_sequence_, manifest.sequence + 1);
      if (manifest.step != checkpoint.step) continue;
      std::error_code none;
      const bool is_resumed = !resumed_from.empty() && fs::equivalent(checkpoint.path, resumed_from, none);
      if (is_resumed || (!is_verified && (!newest || manifest.sequence > newest->sequence))) {
        newest = std::move(manifest);
        is_verified = is_resumed;
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      // A damaged checkpoint is ignored here; loading it reports the damage.
    }
  }
  if (!newest) return;
  const auto best_step = best_step_here(newest->best);
  update_links(newest->step, best_step);
  if (is_verified) prune(newest->step, best_step, false);
}

SnapshotTarget CheckpointStore::begin(std::int64_t step, std::int64_t bytes) {
  pending_target_.path = folder_ + "/" + name_of_step(step);
  pending_target_.bytes = bytes;
  abandon();
  require_space_for(pending_target_.path, bytes);
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
  {
    const std::string text = to_text(manifest, files);
    const std::string path = pending_target_.address + "/" + manifest_file;
    OutputFile file(path, pending_target_.path, pending_target_.bytes, use_of(policy_.storage));
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.finish();
    const FilePiece piece = std::as_bytes(std::span(text));
    if (policy_.storage == Storage::disk) verifier_.verify(path, pending_target_.path, {&piece, 1});
  }
  if (policy_.require_current) policy_.require_current();
  folder->commit();
  ++next_sequence_;
  const auto best_step = best_step_here(manifest.best);
  update_links(manifest.step, best_step);
  prune(manifest.step, best_step, true);
  return pending_target_.path;
}

bool CheckpointStore::has(std::int64_t step) const {
  std::error_code error;
  return fs::exists(folder_ + "/" + name_of_step(step), error);
}

// Returns the step of the best checkpoint, or the step that the link `best` points at if that checkpoint could not be
// written.
std::optional<std::int64_t> CheckpointStore::best_step_here(const std::optional<BestResult>& best) const {
  if (!best) return std::nullopt;
  if (has(best->step)) return best->step;
  std::error_code error;
  const std::string before = fs::read_symlink(folder_ + "/best", error).string();
  for (const CheckpointFolder& checkpoint : list_checkpoints(run_directory_)) {
    if (name_of_step(checkpoint.step) == before) return checkpoint.step;
  }
  return best->step;
}

void CheckpointStore::update_links(std::int64_t last_step, const std::optional<std::int64_t>& best_step) const {
  link("last", last_step);
  link("best", best_step);
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

// Removes checkpoints beyond `keep`; `later_steps`: whether checkpoints of steps after `last_step` are removed first,
// or left and not counted.
void CheckpointStore::prune(std::int64_t last_step, const std::optional<std::int64_t>& best_step,
                            bool later_steps) const {
  std::vector<CheckpointFolder> checkpoints = list_checkpoints(run_directory_);
  if (!later_steps) std::erase_if(checkpoints, [&](const CheckpointFolder& c) { return c.step > last_step; });
  const auto rank = [&](const CheckpointFolder& c) { return std::pair(c.step > last_step, -c.step); };
  std::sort(checkpoints.begin(), checkpoints.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (std::size_t i = static_cast<std::size_t>(policy_.keep); i < checkpoints.size(); ++i) {
    if (checkpoints[i].step == best_step) continue;
    remove_checkpoint(checkpoints[i].path);
  }
}

void CheckpointStore::clear() {
  for (const CheckpointFolder& checkpoint : list_checkpoints(run_directory_)) remove_checkpoint(checkpoint.path);
  update_links(-1, std::nullopt);
}

std::string FolderSink::write(const SnapshotTarget& target, const SnapshotFile& file,
                              std::span<const NamedTensor> shards) {
  const std::string name = file_name(file);
  const std::string path = target.address + "/" + name;
  const std::string head = safetensors_head(shards, {{"format", "trainctl"}});
  std::vector<FilePiece> pieces = pieces_of(shards);
  pieces.insert(pieces.begin(), std::as_bytes(std::span(head)));
  OutputFile output(path, target.path, target.bytes, use_of(storage_));
  for (const FilePiece& piece : pieces) output.write(piece.data(), std::ssize(piece));
  const FileSeal seal = output.finish();
  if (storage_ == Storage::disk) verifier_.verify(path, target.path, pieces);
  FileRecord record;
  for (const NamedTensor& shard : shards) record.add(shard.name, shard.shape, shard.extent, tensor_hash(shard.view));
  return record.finish(name, seal);
}

std::string tensor_hash(const View& view) {
  return format("{:016x}", xxh3(view.data, static_cast<std::size_t>(view.bytes())));
}

}  // namespace trainctl
