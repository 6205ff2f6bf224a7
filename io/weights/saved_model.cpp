// Finds the JSON of a saved network in its file.
#include "io/weights/saved_model.h"

#include <string_view>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "io/datasets/arrays/zip.h"

namespace trainctl {
namespace {

// The largest networks of keras.applications take about 1 MB; in memory JSON takes some tens of times its length.
constexpr std::int64_t most_text = 8 << 20;
constexpr int deepest_json = 100;

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::data, SourceLocation{path}, what,
              "save the network again, with model.save(\"network.keras\")");
}

Json parse(const std::string& text, const std::string& path) {
  if (static_cast<std::int64_t>(text.size()) > most_text) {
    damaged(path, format("its description of the network is longer than {} MB", most_text >> 20));
  }
  bool too_deep = false;
  const auto look = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > deepest_json;
    return depth <= deepest_json;
  };
  try {
    Json json = Json::parse(text, look);
    if (too_deep) damaged(path, format("its description of the network has more than {} levels", deepest_json));
    if (json.is_object()) return json;
  } catch (const Json::exception&) {
  }
  damaged(path, "its description of the network is damaged: no JSON object");
}

}  // namespace

Json saved_model_in_hdf5(const Hdf5File& file, const std::string& path) {
  const auto network = file.text_attribute("", "model_config");
  if (!network) return {};
  Json json = parse(*network, path);
  if (const auto compiled = file.text_attribute("", "training_config")) json["compile_config"] = parse(*compiled, path);
  json["keras_version"] = file.text_attribute("", "keras_version").value_or("");
  return json;
}

Json saved_model_in_zip(const Bytes& archive, const std::string& path) {
  const auto read = [&](const std::string& name) -> std::string {
    for (const ZipMember& member : list_zip(archive, path)) {
      if (member.name != name) continue;
      if (member.size > most_text) damaged(path, format("{} is longer than {} MB", name, most_text >> 20));
      const Bytes bytes = zip_bytes(archive, member, path + "/" + name).loaded();
      return {reinterpret_cast<const char*>(bytes.in_memory()), static_cast<std::size_t>(bytes.size())};
    }
    return "";
  };
  const std::string network = read("config.json");
  if (network.empty()) return {};
  Json json = parse(network, path + "/config.json");
  const std::string metadata = read("metadata.json");
  json["keras_version"] = metadata.empty() ? "" : parse(metadata, path + "/metadata.json").value("keras_version", "");
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
            "it holds no network (no attribute model_config), weights alone: a config's `model.weights` reads it");
  }
  if (beginning.starts_with("PK\x03\x04"sv)) {
    Json network = saved_model_in_zip(open_data(path), path);
    if (!network.is_null()) return network;
    damaged(path, "no .keras file: it holds no config.json");
  }
  damaged(path, "neither a .keras nor an .h5 file");
}

}  // namespace trainctl
