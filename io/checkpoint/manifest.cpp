// Manifests to and from JSON.
#include "io/checkpoint/manifest.h"

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

Manifest::File to_file(const std::string& name, const Json& json) {
  Manifest::File file{name, {json.at("bytes"), json.at("sha256")}, {}};
  for (const auto& [tensor, value] : json.at("tensors").items()) {
    file.tensors.push_back({tensor, Shape(value.at("shape").get<std::vector<std::int64_t>>()), value.at("xxh3")});
  }
  return file;
}

Manifest from_json(const Json& json) {
  Manifest manifest;
  manifest.sequence = json.at("sequence");
  manifest.step = json.at("step");
  const Json& position = json.at("position");
  manifest.position = {position.at("seed"), position.at("epoch"), position.at("offset")};
  manifest.mesh = json.at("mesh").get<std::vector<int>>();
  manifest.weights_sha256 = json.at("weights_sha256");
  for (const auto& [name, value] : json.at("metrics").items()) {
    manifest.metrics[name] = number_of(value);
  }
  manifest.facts = json.at("facts").get<std::map<std::string, std::string>>();
  for (const auto& [name, value] : json.at("files").items()) manifest.files.push_back(to_file(name, value));
  return manifest;
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
    return from_json(json);
  } catch (const Json::exception& failure) {
    throw Error(ErrorKind::data, Place{path}, std::string("not a checkpoint's manifest: ") + failure.what());
  }
}

}  // namespace trainctl
