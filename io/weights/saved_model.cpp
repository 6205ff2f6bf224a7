// Finds the JSON of a saved network in a file.
#include "io/weights/saved_model.h"

#include <string_view>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "io/datasets/arrays/zip.h"

namespace trainctl {
namespace {

// The largest networks of keras.applications have about 1 MB; parsed JSON needs some tens of times its length in
// memory.
constexpr std::int64_t max_description_bytes = 8 << 20;

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::data, SourceLocation{path}, what,
              "save the network again, with model.save(\"network.keras\")");
}

// Parses the text of a member of the file, which `shown` names in errors.
Json parse(const std::string& text, const std::string& path, const std::string& shown) {
  if (static_cast<std::int64_t>(text.size()) > max_description_bytes) {
    damaged(path, format("its description of the network is longer than {} MB", max_description_bytes >> 20));
  }
  JsonFault fault;
  Json json = parse_json(text, fault);
  if (json.is_object()) return json;
  if (!json.is_discarded()) damaged(path, format("{} must be a JSON object, but is {}", shown, json_kind(json)));
  const std::string place = fault.line > 0 ? format(" at line {}, column {}", fault.line, fault.column) : "";
  damaged(path, format("{} is not JSON{}: {}", shown, place, fault.problem));
}

}  // namespace

Json saved_model_in_hdf5(const Hdf5File& file, const std::string& path) {
  const auto network = file.text_attribute("", "model_config");
  if (!network) return {};
  Json json = parse(*network, path, "the attribute model_config");
  if (const auto compiled = file.text_attribute("", "training_config")) {
    json["compile_config"] = parse(*compiled, path, "the attribute training_config");
  }
  json["keras_version"] = file.text_attribute("", "keras_version").value_or("");
  return json;
}

Json saved_model_in_zip(const Bytes& archive, const std::string& path) {
  const auto read = [&](const std::string& name) -> std::string {
    for (const ZipMember& member : list_zip(archive, path)) {
      if (member.name != name) continue;
      if (member.size > max_description_bytes)
        damaged(path, format("{} is longer than {} MB", name, max_description_bytes >> 20));
      const Bytes bytes = zip_bytes(archive, member, path + "/" + name).loaded();
      return {reinterpret_cast<const char*>(bytes.in_memory()), static_cast<std::size_t>(bytes.size())};
    }
    return "";
  };
  const std::string network = read("config.json");
  if (network.empty()) return {};
  Json json = parse(network, path, "its config.json");
  const std::string metadata = read("metadata.json");
  const Json facts = metadata.empty() ? Json::object() : parse(metadata, path, "its metadata.json");
  const auto version = facts.find("keras_version");
  json["keras_version"] = version != facts.end() && version->is_string() ? *version : Json("");
  return json;
}

Json read_saved_model(const std::string& path) {
  using namespace std::string_view_literals;
  char bytes[8] = {};
  const InputFile file(path);
  const std::string_view beginning(bytes, static_cast<std::size_t>(file.read_some(0, bytes, sizeof bytes)));
  if (beginning.starts_with("\x89HDF\r\n\x1a\n"sv)) {
    Json network = saved_model_in_hdf5(Hdf5File(open_data(path), path), path);
    if (!network.is_null()) return network;
    damaged(path,
            "it has weights only and no network (no attribute model_config): use it as `model.weights` in a config");
  }
  if (beginning.starts_with("PK\x03\x04"sv)) {
    Json network = saved_model_in_zip(open_data(path), path);
    if (!network.is_null()) return network;
    damaged(path, "not a .keras file: it has no config.json");
  }
  damaged(path, "neither a .keras nor an .h5 file");
}

}  // namespace trainctl
