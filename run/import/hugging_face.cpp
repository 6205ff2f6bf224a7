// Writes a config with the preset that computes the network of a folder.
#include "run/import/hugging_face.h"

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/layers/model/model.h"
#include "core/layers/model/model_options.h"
#include "io/hugging_face/description.h"
#include "io/hugging_face/network.h"
#include "io/hugging_face/values.h"
#include "io/weights/load.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_positions = 1024;

std::string header(const std::string& folder, const std::vector<std::string>& notes) {
  std::string text = format("# The network of {}, imported by trainctl. A config uses it with `include`, and adds\n",
                            fs::path(folder).filename().string());
  text += "# the text and the rest of the training:\n#\n#   include: THIS_FILE\n#   data: {path: corpus/}\n";
  text += "#   train: {batch_size: 8, epochs: 1, optimizer: {name: adamw, learning_rate: 2e-5}}\n#\n";
  for (const std::string& note : notes) text += "# " + note + "\n";
  return text;
}

// Builds the network of the preset, and compares it with the folder's weights.
void check_network(const std::string& folder, const HuggingFaceNetwork& network, HuggingFaceImport& result) {
  Reader reader;
  ModelInput tokens{"", {std::min(network.positions, most_positions)}, {}};
  tokens.format.dtype = DType::int32;
  const BuiltModel built = build_model(preset_model(network), {.inputs = {tokens}, .training = false}, reader);
  reader.throw_if_failed();
  WeightsOptions weights;
  weights.file.value.text = folder;
  weights.file.location.file = folder;
  check_weights(weights, built.graph);
  result.layers = built.layers.size();
  for (const LayerLine& line : built.layers) result.parameters += line.parameters;
}

}  // namespace

HuggingFaceImport import_hugging_face(const std::string& folder, const std::string& config_folder) {
  const HuggingFaceNetwork network = read_hugging_face_config(folder);
  const fs::path from = fs::weakly_canonical(fs::absolute(folder));
  const std::string relative = from.lexically_proximate(fs::weakly_canonical(fs::absolute(config_folder))).string();
  HuggingFaceImport result;
  result.preset = network.preset;
  check_network(folder, network, result);
  Node data = map_node(), model = map_node(), train = map_node(), document = map_node();
  const std::int64_t positions = std::min(network.positions, most_positions);
  append(data, "dataset", scalar_node("text"));
  if (exists(folder + "/tokenizer.json") || exists(folder + "/tokenizer.model")) {
    append(data, "tokenizer", scalar_node(relative, true));
  } else {
    result.notes.emplace_back("The folder has no tokenizer.json and no tokenizer.model: set `data.tokenizer`.");
  }
  append(data, "positions", number_node(positions));
  if (positions < network.positions) {
    result.notes.push_back(format("Samples have {} positions here; the network was made for up to {}: see `positions`.",
                                  positions, network.positions));
  }
  append(model, "preset", scalar_node(network.preset));
  append(model, "with", network.with);
  append(model, "weights", scalar_node(relative, true));
  append(train, "loss", scalar_node("sparse_categorical_crossentropy"));
  append(document, "data", std::move(data));
  append(document, "model", std::move(model));
  append(document, "train", std::move(train));
  result.config = header(from.string(), result.notes) + to_yaml(document) + "\n";
  return result;
}

}  // namespace trainctl
