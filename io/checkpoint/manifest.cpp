// Manifests to and from JSON.
#include "io/checkpoint/manifest.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

constexpr int format_version = 1;

// What follows the hashed part.
std::string seal_of(std::string_view body) {
  return ",\n  \"manifest_sha256\": \"" + sha256(body.data(), body.size()) + "\"\n}\n";
}

Json to_json(const Manifest::File& file) {
  Json tensors = Json::object();
  for (const Manifest::Tensor& tensor : file.tensors) {
    tensors[tensor.name] = {{"shape", tensor.shape.sizes()}, {"xxh3", tensor.xxh3}};
  }
  return {{"bytes", file.seal.bytes}, {"sha256", file.seal.sha256}, {"tensors", tensors}};
}

// Reads what a manifest's JSON holds; numbers that no run has are refused by name.
class ManifestReader {
 public:
  explicit ManifestReader(const std::string& path) : path_(path) {}

  Manifest read(const Json& json) const {
    Manifest manifest;
    manifest.sequence = whole(json, "sequence", largest);
    manifest.step = whole(json, "step", largest);
    const Json& position = json.at("position");
    if (!position.at("seed").is_number_unsigned()) fail("seed", position.at("seed"));
    manifest.position = {position.at("seed"), whole(position, "epoch", largest), whole(position, "offset", largest)};
    for (const Json& size : json.at("mesh")) {
      manifest.mesh.push_back(static_cast<int>(whole(size, "mesh", 1, std::numeric_limits<int>::max())));
    }
    manifest.weights_sha256 = json.at("weights_sha256");
    for (const auto& [name, value] : json.at("metrics").items()) {
      manifest.metrics[name] = number_of(value);
    }
    manifest.facts = json.at("facts").get<std::map<std::string, std::string>>();
    if (const auto best = json.find("best"); best != json.end() && !best->is_null()) manifest.best = read_best(*best);
    for (const auto& [name, value] : json.at("files").items()) manifest.files.push_back(read_file(name, value));
    return manifest;
  }

 private:
  // More steps, epochs, samples and bytes than any run has; sums and small multiples of such numbers are still exact.
  static constexpr std::int64_t largest = std::int64_t{1} << 53;

  [[noreturn]] void fail(const std::string& name, const Json& value) const {
    throw Error(ErrorKind::data, Place{path_},
                format("the checkpoint is damaged: {} is {}", name, value.dump(-1, ' ', true).substr(0, 40)),
                "--resume auto takes the newest whole one");
  }

  std::int64_t whole(const Json& value, const char* name, std::int64_t least, std::int64_t most) const {
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= static_cast<std::uint64_t>(least) &&
                      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    if (!fits) fail(name, value);
    return value.get<std::int64_t>();
  }
  std::int64_t whole(const Json& json, const char* name, std::int64_t most) const {
    return whole(json.at(name), name, 0, most);
  }

  BestResult read_best(const Json& json) const {
    const Json& value = json.at("value");
    if (!value.is_number() || !std::isfinite(value.get<double>())) fail("the best value", value);
    return {json.at("monitor"), json.at("mode") == "max", value, whole(json, "step", largest)};
  }

  Manifest::File read_file(const std::string& name, const Json& json) const {
    Manifest::File file{name, {whole(json, "bytes", std::numeric_limits<std::int64_t>::max()), json.at("sha256")}, {}};
    for (const auto& [tensor, value] : json.at("tensors").items()) {
      std::vector<std::int64_t> sizes;
      std::int64_t count = 1;
      for (const Json& size : value.at("shape")) {
        sizes.push_back(whole(size, "a tensor's size", 0, largest));
        if (__builtin_mul_overflow(count, sizes.back(), &count) || count > largest) fail(tensor, value.at("shape"));
      }
      file.tensors.push_back({tensor, Shape(std::move(sizes)), value.at("xxh3")});
    }
    return file;
  }

  const std::string& path_;
};

Json to_json(const BestResult& best) {
  return {
      {"monitor", best.monitor}, {"mode", best.maximum ? "max" : "min"}, {"value", best.value}, {"step", best.step}};
}

}  // namespace

const Manifest::File* Manifest::find(std::string_view name) const {
  for (const File& file : files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

std::string to_text(const Manifest& manifest) {
  const DataPosition& position = manifest.position;
  Json json;
  json["format"] = "trainctl checkpoint";
  json["format_version"] = format_version;
  json["sequence"] = manifest.sequence;
  json["step"] = manifest.step;
  json["position"] = {{"seed", position.seed}, {"epoch", position.epoch}, {"offset", position.offset}};
  json["mesh"] = manifest.mesh;
  json["weights_sha256"] = manifest.weights_sha256;
  json["metrics"] = json_numbers(manifest.metrics);
  json["facts"] = Json(manifest.facts);
  json["best"] = manifest.best ? to_json(*manifest.best) : Json();
  json["files"] = Json::object();
  for (const Manifest::File& file : manifest.files) json["files"][file.name] = to_json(file);
  std::string body = json.dump(2, ' ', false, Json::error_handler_t::replace);
  body.resize(body.size() - 2);  // "\n}"
  return body + seal_of(body);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const std::size_t end = text.rfind(",\n  \"manifest_sha256\"");
  if (end == std::string::npos || text.substr(end) != seal_of(text.substr(0, end))) {
    throw Error(ErrorKind::data, Place{path}, "the manifest is damaged");
  }
  try {
    const Json json = Json::parse(text);
    if (json.at("format_version") != format_version) {
      throw Error(ErrorKind::data, Place{path},
                  format("the checkpoint has format version {}, this trainctl reads {}", json["format_version"].dump(),
                         format_version),
                  "use the version of trainctl that wrote it");
    }
    return ManifestReader(path).read(json);
  } catch (const Json::exception& failure) {
    throw Error(ErrorKind::data, Place{path}, std::string("not a checkpoint's manifest: ") + failure.what());
  }
}

}  // namespace trainctl
