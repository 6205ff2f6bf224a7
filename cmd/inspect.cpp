// trainctl inspect: what a checkpoint holds, and whether it is whole.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/checkpoint/load.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

struct Finding {
  std::string path;
  std::optional<Manifest> manifest;  // nothing where it cannot be read
  std::string problem;               // empty: whole
};

Finding examine(const std::string& path) {
  Finding finding{path, {}, {}};
  try {
    finding.manifest = read_manifest(path);
    load_checkpoint(path);
  } catch (const Error& failure) {
    if (failure.kind() != ErrorKind::data) throw;
    finding.problem = failure.what();
  }
  return finding;
}

std::vector<std::string> checkpoints_at(const std::string& path) {
  if (fs::exists(path + "/" + manifest_file) || fs::exists(path + "/" + weights_file)) return {path};
  std::vector<std::string> paths;
  for (const CheckpointFolder& folder : newest_checkpoints_first(path)) paths.push_back(folder.path);
  if (paths.empty()) {
    throw Error(ErrorKind::config, Place{path}, "neither a checkpoint nor a run directory that holds one");
  }
  return paths;
}

std::int64_t bytes_of(const Manifest::Tensor& tensor) { return tensor.shape.count() * size_of(DType::float32); }

Json to_json(const Finding& finding) {
  Json json{{"path", finding.path}, {"ok", finding.problem.empty()}};
  json["problem"] = finding.problem.empty() ? Json() : Json(finding.problem);
  if (!finding.manifest) return json;
  const Manifest& manifest = *finding.manifest;
  json["step"] = manifest.step;
  json["position"] = {
      {"seed", manifest.position.seed}, {"epoch", manifest.position.epoch}, {"offset", manifest.position.offset}};
  json["mesh"] = manifest.mesh;
  json["weights_sha256"] = manifest.weights_sha256;
  json["metrics"] = json_numbers(manifest.metrics);
  json["facts"] = Json(manifest.facts);
  json["files"] = Json::array();
  for (const Manifest::File& file : manifest.files) {
    Json tensors = Json::array();
    for (const Manifest::Tensor& tensor : file.tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"shape", tensor.shape.sizes()},
                         {"dtype", name_of(DType::float32)},
                         {"bytes", bytes_of(tensor)},
                         {"xxh3", tensor.xxh3}});
    }
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.seal.bytes}, {"sha256", file.seal.sha256}, {"tensors", tensors}});
  }
  return json;
}

void print_tensors(const Manifest::File& file) {
  std::cout << format("\n{}  {}  sha256 {}\n", file.name, byte_text(file.seal.bytes), file.seal.sha256);
  std::size_t name_width = 4, shape_width = 5;
  for (const Manifest::Tensor& tensor : file.tensors) {
    name_width = std::max(name_width, tensor.name.size());
    shape_width = std::max(shape_width, to_string(tensor.shape).size());
  }
  const auto row = [&](auto name, auto shape, auto dtype, auto bytes, auto hash) {
    std::cout << format("  {:<{}}  {:<{}}  {:<7}  {:>12}  {}\n", name, name_width, shape, shape_width, dtype, bytes,
                        hash);
  };
  row("name", "shape", "dtype", "bytes", "xxh3");
  for (const Manifest::Tensor& tensor : file.tensors) {
    row(tensor.name, to_string(tensor.shape), name_of(DType::float32), bytes_of(tensor), tensor.xxh3);
  }
}

void print(const Manifest& manifest) {
  std::string mesh;
  for (int size : manifest.mesh) mesh += (mesh.empty() ? "" : " x ") + std::to_string(size);
  const DataPosition& position = manifest.position;
  std::cout << format("step        {}\n", manifest.step);
  std::cout << format("position    epoch {}, sample {}, seed {}\n", position.epoch, position.offset, position.seed);
  std::cout << format("mesh        {}\n", mesh.empty() ? "unknown" : mesh);
  std::cout << format("weights     sha256 {}\n", manifest.weights_sha256);
  for (const auto& [name, value] : manifest.metrics) std::cout << format("metric      {} {:.6g}\n", name, value);
  for (const auto& [name, text] : manifest.facts) std::cout << format("fact        {}: {}\n", name, text);
  for (const Manifest::File& file : manifest.files) print_tensors(file);
  std::cout << '\n';
}

int inspect(const std::string& path, const CommonOptions& options) {
  std::vector<Finding> findings;
  for (const std::string& checkpoint : checkpoints_at(path)) findings.push_back(examine(checkpoint));
  const bool ok =
      std::all_of(findings.begin(), findings.end(), [](const auto& finding) { return finding.problem.empty(); });
  if (options.json) {
    Json json{{"ok", ok}, {"checkpoints", Json::array()}};
    for (const Finding& finding : findings) json["checkpoints"].push_back(to_json(finding));
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    if (findings[0].manifest && !options.quiet) print(*findings[0].manifest);
    for (const Finding& finding : findings) {
      std::cout << (finding.problem.empty() ? finding.path + ": whole, every hash verified" : finding.problem) << '\n';
    }
  }
  return ok ? 0 : exit_code(ErrorKind::answer_is_no);
}

}  // namespace

Subcommand inspect_subcommand() {
  return {"inspect", "Shows what a checkpoint holds, and verifies it",
          "trainctl inspect runs/mnist\n  trainctl inspect runs/mnist/checkpoints/best --json", [](CLI::App& app) {
            auto options = std::make_shared<CommonOptions>();
            auto path = std::make_shared<std::string>();
            app.add_option("path", *path, "A checkpoint, or a run directory: its newest in detail, all verified")
                ->required()
                ->type_name("RUN_DIR|CHECKPOINT");
            add_output_options(app, *options);
            return [options, path] { return inspect(*path, *options); };
          }};
}

}  // namespace trainctl
