// Reads a checkpoint and shows its contents.
#include "io/checkpoint/inspection.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/tensor/extent_json.h"
#include "io/checkpoint/load.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

TensorStatistics statistics_of(const View& view) {
  const std::span values(view.as<float>(), static_cast<std::size_t>(view.count));
  const double count = std::max(static_cast<double>(view.count), 1.0);
  TensorStatistics result;
  double squares = 0, deviations = 0;
  for (const float value : values) {
    result.mean += value / count;
    squares += static_cast<double>(value) * value;
  }
  for (const float value : values) deviations += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(deviations / count);
  result.norm = std::sqrt(squares);
  return result;
}

std::map<std::string, TensorStatistics> statistics_of(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, TensorStatistics> all;
  for (const NamedTensor& tensor : tensors) all[tensor.name] = statistics_of(tensor.view);
  return all;
}

std::string line(const char* name, const std::string& text) { return format("{:<11} {}\n", name, text); }

// Whether the metadata entry holds sums of an unfinished epoch, which only a resumed run needs.
bool is_internal(const std::string& name) { return name.starts_with("epoch/"); }

std::string metadata_text(const SnapshotMetadata& metadata) {
  std::string text;
  for (const auto& [name, value] : metadata) {
    if (is_internal(name) || name == "kernel_hash") continue;
    const auto lines = std::count(value.begin(), value.end(), '\n');
    if (name == "kernel_choices") {
      const auto hash = metadata.find("kernel_hash");
      text += line("kernels", format("{}{} choices (--json lists them)",
                                     hash == metadata.end() ? "" : "hash " + hash->second + ", ", lines));
    } else {
      text += line(name.c_str(), lines > 0 || value.empty() ? format("{} choices (--json lists them)", lines) : value);
    }
  }
  return text;
}

// Returns one line for each of the files, and a table of the tensors that they hold together.
std::string tensors_text(const std::vector<const Manifest::File*>& files,
                         const std::map<std::string, TensorStatistics>& statistics) {
  std::string text = files.empty() ? "" : "\n";
  std::map<std::string_view, const Manifest::Tensor*> tensors;
  std::size_t name_width = 4, shape_width = 5;
  for (const Manifest::File* file : files) {
    text += format("{}  {}  sha256 {}\n", file->name, byte_text(file->seal.bytes), file->seal.sha256);
    for (const Manifest::Tensor& tensor : file->tensors) {
      tensors[tensor.name] = &tensor;
      name_width = std::max(name_width, tensor.name.size());
      shape_width = std::max(shape_width, to_string(tensor.shape).size());
    }
  }
  const auto row = [&](const auto& name, const auto& shape, const auto& mean, const auto& std, const auto& norm) {
    text += format("  {:<{}}  {:>{}}  {:>11}  {:>11}  {:>11}\n", name, name_width, shape, shape_width, mean, std, norm);
  };
  if (!files.empty()) row("name", "shape", "mean", "std", "norm");
  for (const auto& [name, tensor] : tensors) {
    const auto found = statistics.find(tensor->name);
    const auto cell = [&](double TensorStatistics::*value) {
      return found == statistics.end() ? std::string("?") : format("{:.4g}", found->second.*value);
    };
    row(name, to_string(tensor->shape), cell(&TensorStatistics::mean), cell(&TensorStatistics::deviation),
        cell(&TensorStatistics::norm));
  }
  return text;
}

Json to_json(const Manifest::Tensor& tensor, const std::map<std::string, TensorStatistics>& statistics) {
  Json json{{"name", tensor.name},
            {"shape", tensor.shape.sizes()},
            {"dtype", name_of(DType::float32)},
            {"bytes", tensor.extent.count(tensor.shape) * size_of(DType::float32)},
            {"xxh3", tensor.xxh3}};
  if (!tensor.extent.is_whole()) json["extent"] = to_json(tensor.extent);
  if (const auto found = statistics.find(tensor.name); found != statistics.end()) {
    json["mean"] = found->second.mean;
    json["std"] = found->second.deviation;
    json["norm"] = found->second.norm;
  }
  return json;
}

Inspection inspect_folder(const std::string& path) {
  Inspection inspection{.path = path};
  try {
    inspection.manifest = read_manifest(path);
    const LoadedCheckpoint loaded = load_checkpoint(path);
    inspection.weights_sha256 = weights_sha256(loaded.snapshot.weights);
    inspection.weights = statistics_of(loaded.snapshot.weights);
    inspection.state = statistics_of(loaded.snapshot.state);
  } catch (const Error& failure) {
    if (failure.kind() != ErrorKind::data) throw;
    inspection.problem = failure.what();
  }
  return inspection;
}

// Whether the path is a checkpoint or a damaged one: a manifest, a link, or a folder with files of tensors.
bool is_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path + "/checkpoints", ignored)) return false;
  if (fs::exists(path + "/" + manifest_file, ignored) || fs::is_symlink(path, ignored)) return true;
  if (!fs::is_directory(path, ignored)) return false;
  const std::vector<FolderEntry> entries = list_folder(path);
  return std::any_of(entries.begin(), entries.end(),
                     [](const FolderEntry& entry) { return content_of(entry.name).has_value(); });
}

// Inspects the folder that the link points to, and tries again if the link changes meanwhile.
Inspection inspect_link(const std::string& path) {
  for (int attempt = 1;; ++attempt) {
    const std::string folder = followed(path);
    Inspection inspection = inspect_folder(folder);
    if (inspection.problem.empty() || attempt == reading_attempts || followed(path) == folder) return inspection;
  }
}

}  // namespace

std::vector<Inspection> inspect_all(const std::string& path) {
  if (is_checkpoint(path)) return {inspect_link(path)};
  for (int attempt = 1;; ++attempt) {
    std::vector<Inspection> found;
    for (const CheckpointFolder& folder : newest_checkpoints_first(path)) {
      Inspection inspection = inspect_folder(folder.path);
      if (inspection.problem.empty() || !is_gone(folder.path)) found.push_back(std::move(inspection));
    }
    if (!found.empty()) return found;
    if (attempt < reading_attempts && !newest_checkpoints_first(path).empty()) continue;
    throw Error(ErrorKind::config, SourceLocation{path},
                exists(path) ? "neither a checkpoint nor a run directory that holds one" : "there is no such directory",
                "name a checkpoint, or the directory of a run");
  }
}

Json to_json(const Inspection& inspection) {
  Json json{{"path", inspection.path}, {"ok", inspection.problem.empty()}};
  json["problem"] = inspection.problem.empty() ? Json() : Json(inspection.problem);
  if (!inspection.manifest) return json;
  const Manifest& manifest = *inspection.manifest;
  json["step"] = manifest.step;
  json["position"] = {
      {"seed", manifest.position.seed}, {"epoch", manifest.position.epoch}, {"offset", manifest.position.offset}};
  json["mesh"] = manifest.mesh;
  json["weights_sha256"] = inspection.weights_sha256.empty() ? Json() : Json(inspection.weights_sha256);
  json["metrics"] = json_numbers(manifest.metrics);
  json["best"] = manifest.best ? to_json(*manifest.best) : Json();
  json["facts"] = Json(manifest.metadata);
  json["files"] = Json::array();
  for (const Manifest::File& file : manifest.files) {
    Json tensors = Json::array();
    const bool weights = content_of(file.name) == SnapshotContent::weights;
    for (const Manifest::Tensor& tensor : file.tensors) {
      tensors.push_back(to_json(tensor, weights ? inspection.weights : inspection.state));
    }
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.seal.bytes}, {"sha256", file.seal.sha256}, {"tensors", tensors}});
  }
  return json;
}

std::string describe(const Inspection& inspection) {
  const Manifest& manifest = *inspection.manifest;
  const DataPosition& position = manifest.position;
  std::string mesh;
  for (int size : manifest.mesh) mesh += (mesh.empty() ? "" : " x ") + std::to_string(size);
  std::string text = line("checkpoint", inspection.path);
  text += line("step", std::to_string(manifest.step));
  text += line("position", format("epoch {}, sample {}, seed {}", position.epoch, position.offset, position.seed));
  text += line("mesh", mesh.empty() ? "unknown" : mesh + " (data x pipeline x tensor)");
  for (const auto& [name, value] : manifest.metrics) text += line("metric", format("{} {:.6g}", name, value));
  if (manifest.best) {
    text +=
        line("best", format("{} {:.6g} at step {}", manifest.best->monitor, manifest.best->value, manifest.best->step));
  }
  text += metadata_text(manifest.metadata);
  if (!inspection.weights_sha256.empty()) text += line("weights", "sha256 " + inspection.weights_sha256);
  text += tensors_text(manifest.files_of(SnapshotContent::weights), inspection.weights);
  text += tensors_text(manifest.files_of(SnapshotContent::state), inspection.state);
  return text + "\n";
}

}  // namespace trainctl
