// Saving checkpoints and removing old ones.
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

CheckpointStore::CheckpointStore(const std::string& run_directory, StorePolicy policy)
    : run_directory_(run_directory), folder_(run_directory + "/checkpoints"), policy_(policy) {
  require(policy.keep >= 1, "at least one checkpoint is kept");
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
      // A damaged one counts for nothing; whoever loads says so.
    }
  }
  if (!newest) return;
  next_sequence_ = newest->sequence + 1;
  settle(newest->step, newest->best);
}

SnapshotTarget CheckpointStore::begin(std::int64_t step, std::int64_t bytes) {
  target_.path = folder_ + "/" + name_of_step(step);
  target_.bytes = bytes;
  abandon();
  begun_ = std::make_unique<AtomicFolder>(target_.path);
  target_.address = fs::absolute(begun_->temporary()).string();
  return target_;
}

std::string CheckpointStore::commit(const Snapshot& snapshot, std::span<const std::string> files) {
  require(begun_ != nullptr, "a checkpoint is begun before it is committed");
  const std::unique_ptr<AtomicFolder> folder = std::move(begun_);
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
    OutputFile file(target_.address + "/" + manifest_file, target_.path, target_.bytes);
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.finish();
  }
  folder->commit();
  ++next_sequence_;
  settle(manifest.step, manifest.best);
  return target_.path;
}

void CheckpointStore::settle(std::int64_t last_step, const std::optional<BestResult>& best) const {
  const auto best_step = best ? std::optional(best->step) : std::nullopt;
  link("last", last_step);
  link("best", best_step);
  prune(last_step, best_step);
}

// A checkpoint that is not here (the run went on from another directory's) has no link.
void CheckpointStore::link(const std::string& name, const std::optional<std::int64_t>& step) const {
  const std::string path = folder_ + "/" + name;
  std::error_code error;
  const fs::path now = fs::read_symlink(path, error);
  const std::string target = step ? name_of_step(*step) : "";
  const bool is_here = step && fs::status(folder_ + "/" + target, error).type() != fs::file_type::not_found;
  if (!is_here) fs::remove(path, error);
  if (is_here && now != target) replace_link(path, target);
}

void CheckpointStore::prune(std::int64_t last_step, const std::optional<std::int64_t>& best_step) const {
  std::vector<CheckpointFolder> checkpoints = list_checkpoints(run_directory_);
  const auto rank = [&](const CheckpointFolder& c) { return std::pair(c.step > last_step, -c.step); };
  std::sort(checkpoints.begin(), checkpoints.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (std::size_t i = static_cast<std::size_t>(policy_.keep); i < checkpoints.size(); ++i) {
    if (checkpoints[i].step == best_step) continue;
    // Renamed first: a half-removed checkpoint must not bear the name of a whole one.
    const fs::path path = checkpoints[i].path;
    const fs::path aside = path.parent_path() / (".partial-old-" + path.filename().string());
    std::error_code error;
    fs::rename(path, aside, error);
    if (!error) fs::remove_all(aside, error);
    if (error) log::warning(format("{}: cannot remove the old checkpoint: {}", path.string(), error.message()));
  }
}

std::string FolderSink::write(const SnapshotTarget& target, const SnapshotFile& file,
                              std::span<const NamedTensor> parts) {
  const std::string name = file_name(file);
  OutputFile output(target.address + "/" + name, target.path, target.bytes);
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
