// Converts manifests to JSON and back.
#include "io/checkpoint/manifest.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_append.h"
#include "core/base/json_parse.h"
#include "core/tensor/extent_json.h"

namespace trainctl {
namespace {

constexpr int present_format = 3;

constexpr std::string_view suffix = ".safetensors";

std::string_view stem_of(SnapshotContent content) { return content == SnapshotContent::weights ? "weights" : "state"; }

bool is_number(std::string_view text) {
  return text.size() >= 5 && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Whether the text has the format "-00001-of-00004".
bool is_numbering(std::string_view text) {
  constexpr std::string_view between = "-of-";
  const std::size_t middle = text.find(between);
  return text.starts_with('-') && middle != std::string_view::npos && is_number(text.substr(1, middle - 1)) &&
         is_number(text.substr(middle + between.size()));
}

// The end of the manifest, which follows the hashed text.
std::string seal_of(std::string_view body) {
  return ",\n  \"manifest_sha256\": \"" + sha256(body.data(), body.size()) + "\"\n}\n";
}

// Appends {"name": "text", ...}.
void append(std::string& text, const SnapshotMetadata& metadata) {
  text += '{';
  for (const auto& [name, value] : metadata) {
    text += text.back() == '{' ? "\n    " : ",\n    ";
    append_json_string(text, name);
    text += ": ";
    append_json_string(text, value);
  }
  text += metadata.empty() ? "}" : "\n  }";
}

// Reads a manifest from its JSON; numbers that are out of range are reported by name.
class ManifestReader {
 public:
  explicit ManifestReader(const std::string& path) : path_(path) {}

  Manifest read(const Json& json) const {
    Manifest manifest;
    manifest.sequence = whole(json, "sequence", max_number);
    manifest.step = whole(json, "step", max_number);
    const Json& position = json.at("position");
    if (!position.at("seed").is_number_unsigned()) fail("seed", position.at("seed"));
    manifest.position = {position.at("seed"), whole(position, "epoch", max_number),
                         whole(position, "offset", max_number)};
    for (const Json& size : json.at("mesh")) {
      manifest.mesh.push_back(static_cast<int>(whole(size, "mesh", 1, std::numeric_limits<int>::max())));
    }
    if (json.at("format_version") < present_format) manifest.weights_sha256 = json.at("weights_sha256");
    for (const auto& [name, value] : json.at("metrics").items()) {
      manifest.metrics[name] = number_of(value);
    }
    manifest.metadata = json.at("facts").get<SnapshotMetadata>();
    if (const auto best = json.find("best"); best != json.end() && !best->is_null()) manifest.best = read_best(*best);
    for (const auto& [name, value] : json.at("files").items()) manifest.files.push_back(read_file(name, value));
    return manifest;
  }

 private:
  // Upper bound of steps, epochs, samples and bytes. No run reaches it, and sums and small multiples of such numbers
  // cannot overflow.
  static constexpr std::int64_t max_number = std::int64_t{1} << 53;

  [[noreturn]] void fail(const std::string& name, const Json& value) const {
    throw Error(ErrorKind::data, SourceLocation{path_},
                format("the checkpoint is damaged: {} is {}", name, value.dump(-1, ' ', true).substr(0, 40)),
                "--resume auto uses the newest whole checkpoint; to other commands, name the folder of an older one");
  }

  std::int64_t whole(const Json& value, const char* name, std::int64_t min, std::int64_t max) const {
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= static_cast<std::uint64_t>(min) &&
                      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(max);
    if (!fits) fail(name, value);
    return value.get<std::int64_t>();
  }
  std::int64_t whole(const Json& json, const char* name, std::int64_t max) const {
    return whole(json.at(name), name, 0, max);
  }

  Manifest::File read_file(const std::string& name, const Json& json) const {
    Manifest::File file{name, {whole(json, "bytes", std::numeric_limits<std::int64_t>::max()), json.at("sha256")}, {}};
    for (const auto& [tensor, value] : json.at("tensors").items()) {
      std::vector<std::int64_t> sizes;
      std::int64_t count = 1;
      for (const Json& size : value.at("shape")) {
        sizes.push_back(whole(size, "a tensor's size", 0, max_number));
        if (__builtin_mul_overflow(count, sizes.back(), &count) || count > max_number) fail(tensor, value.at("shape"));
      }
      const Shape shape(std::move(sizes));
      const auto extent = extent_from_json(value.value("extent", Json()), shape);
      if (!extent) fail(tensor + "'s extent", value.at("extent"));
      file.tensors.push_back({tensor, shape, value.at("xxh3"), *extent});
    }
    return file;
  }

  BestResult read_best(const Json& json) const {
    const Json& value = json.at("value");
    if (!value.is_number() || !std::isfinite(value.get<double>())) fail("the best value", value);
    return {json.at("monitor"), json.at("mode") == "max", value, whole(json, "step", max_number)};
  }

  const std::string& path_;
};

}  // namespace

Json to_json(const BestResult& best) {
  return {
      {"monitor", best.monitor}, {"mode", best.maximum ? "max" : "min"}, {"value", best.value}, {"step", best.step}};
}

std::string file_name(const SnapshotFile& file) {
  const std::string_view stem = stem_of(file.content);
  if (file.count == 1) return format("{}{}", stem, suffix);
  return format("{}-{:05}-of-{:05}{}", stem, file.number, file.count, suffix);
}

std::optional<SnapshotContent> content_of(std::string_view file_name) {
  if (!file_name.ends_with(suffix)) return std::nullopt;
  file_name.remove_suffix(suffix.size());
  for (const SnapshotContent content : {SnapshotContent::weights, SnapshotContent::state}) {
    const std::string_view stem = stem_of(content);
    if (!file_name.starts_with(stem)) continue;
    const std::string_view rest = file_name.substr(stem.size());
    if (rest.empty() || is_numbering(rest)) return content;
  }
  return std::nullopt;
}

std::vector<const Manifest::File*> Manifest::files_of(SnapshotContent content) const {
  std::vector<const File*> found;
  for (const File& file : files) {
    if (content_of(file.name) == content) found.push_back(&file);
  }
  return found;
}

void FileRecord::add(std::string_view name, const Shape& shape, const TensorExtent& extent, std::string_view xxh3) {
  tensors_ += tensors_.empty() ? "\n        " : ",\n        ";
  append_json_string(tensors_, name);
  tensors_ += ": {\"shape\": ";
  append_json_list(tensors_, shape.sizes());
  tensors_ += ", \"xxh3\": ";
  append_json_string(tensors_, xxh3);
  if (!extent.is_whole()) tensors_ += ", \"extent\": " + json_text(to_json(extent));
  tensors_ += '}';
}

std::string FileRecord::finish(std::string_view file_name, const FileSeal& seal) {
  std::string text;
  append_json_string(text, file_name);
  text += ": {\n      \"bytes\": " + std::to_string(seal.bytes) + ",\n      \"sha256\": ";
  append_json_string(text, seal.sha256);
  text += ",\n      \"tensors\": {" + tensors_;
  text += tensors_.empty() ? "}\n    }" : "\n      }\n    }";
  return text;
}

std::string to_text(const Manifest& manifest, std::span<const std::string> files) {
  const DataPosition& position = manifest.position;
  Json json;
  json["format"] = "trainctl checkpoint";
  json["format_version"] = present_format;
  json["sequence"] = manifest.sequence;
  json["step"] = manifest.step;
  json["position"] = {{"seed", position.seed}, {"epoch", position.epoch}, {"offset", position.offset}};
  json["mesh"] = manifest.mesh;
  json["metrics"] = json_numbers(manifest.metrics);
  json["best"] = manifest.best ? to_json(*manifest.best) : Json();
  std::string body = json_text(json, 2);
  body.resize(body.size() - 2);  // "\n}"
  body += ",\n  \"facts\": ";
  append(body, manifest.metadata);
  body += ",\n  \"files\": {";
  for (const std::string& file : files) body += (body.back() == '{' ? "\n    " : ",\n    ") + file;
  body += files.empty() ? "}" : "\n  }";
  body += seal_of(body);
  return body;
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const std::size_t end = text.rfind(",\n  \"manifest_sha256\"");
  if (end == std::string::npos || text.substr(end) != seal_of(text.substr(0, end))) {
    throw Error(ErrorKind::data, SourceLocation{path}, "the manifest is damaged");
  }
  try {
    const Json json = parse_json(text, SourceLocation{path});
    const Json& version = json.at("format_version");
    if (!version.is_number_integer() || version < 1 || version > present_format) {
      throw Error(ErrorKind::data, SourceLocation{path},
                  format("the checkpoint has format version {}, this trainctl reads 1 to {}", json_text(version),
                         present_format),
                  "use the version of trainctl that wrote it");
    }
    return ManifestReader(path).read(json);
  } catch (const Json::exception& failure) {
    throw Error(ErrorKind::data, SourceLocation{path}, "not a checkpoint's manifest: " + json_problem(failure),
                "resume from another checkpoint of the run, or use the version of trainctl that wrote this one");
  }
}

}  // namespace trainctl
