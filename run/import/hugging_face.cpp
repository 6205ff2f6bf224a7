// Writes a config with the preset that computes the network of a folder.
#include "run/import/hugging_face.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/layers/model/model.h"
#include "core/layers/model/model_options.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/hugging_face/description.h"
#include "io/hugging_face/folder.h"
#include "io/hugging_face/network.h"
#include "io/hugging_face/values.h"
#include "io/weights/load.h"
#include "io/yaml/yaml.h"
#include "run/import/image_steps.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_positions = 1024;

// The absolute path of a folder, without a slash at its end. Links are not followed: the user chose their names.
fs::path absolute_path(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

std::string header(const std::string& name, bool texts, const std::vector<std::string>& notes) {
  std::string text =
      format("# The network of {}, imported by trainctl. A config uses it with `include`, and adds\n", name);
  text += "# the data and the rest of the training:\n#\n#   include: THIS_FILE\n";
  text += texts ? "#   data: {path: corpus/}\n" : "#   data: {path: images/}\n";
  text += "#   train: {batch_size: 8, epochs: 1, optimizer: {name: adamw, learning_rate: 2e-5}}\n#\n";
  for (const std::string& note : notes) text += "# " + note + "\n";
  return text;
}

bool has_text(const HuggingFaceNetwork& network) { return network.sample.rank() == 1; }

// The shape of a sample in the config: fewer positions than the network can have, since they need much memory.
Shape sample_of(const HuggingFaceNetwork& network) {
  return has_text(network) ? Shape{std::min(network.sample[0], most_positions)} : network.sample;
}

// The patterns of tensors after the network's end that the folder has.
std::vector<std::string> skipped_tensors(const std::string& folder, const HuggingFaceNetwork& network) {
  std::vector<std::string> patterns;
  const HuggingFaceFolder tensors(folder);
  for (const std::string& pattern : network.other_heads) {
    const bool any = std::any_of(tensors.names().begin(), tensors.names().end(), [&](const std::string& name) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
    if (any) patterns.push_back(pattern);
  }
  return patterns;
}

// Builds the network of the preset. The errors name the file from which the network follows.
BuiltModel built_network(const std::string& folder, const HuggingFaceNetwork& network, const ModelInput& input) {
  try {
    Reader reader;
    BuiltModel built = build_model(preset_model(network), {.inputs = {input}, .training = false}, reader);
    reader.throw_if_failed();
    return built;
  } catch (const ConfigError& error) {
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& problem : problems) {
      if (problem.location.file.empty()) problem.location.file = folder + "/config.json";
    }
    throw ConfigError(std::move(problems));
  }
}

// Builds the network of the preset, and compares it with the folder's weights.
void check_network(const std::string& folder, const HuggingFaceNetwork& network,
                   const std::vector<std::string>& skipped, HuggingFaceImport& result) {
  ModelInput input{"", sample_of(network), {}};
  if (has_text(network)) input.format.dtype = DType::int32;
  const BuiltModel built = built_network(folder, network, input);
  WeightsOptions weights;
  weights.file.value.text = folder;
  weights.file.location.file = folder;
  for (const std::string& pattern : skipped) weights.skip.push_back({pattern, {folder}});
  check_weights(weights, built.graph, WeightsUse::import);
  result.layers = built.layers.size();
  for (const LayerLine& line : built.layers) result.parameters += line.parameters;
}

// Why the folder gives no tokenizer; empty if it does.
std::string tokenizer_problem(const std::string& folder) {
  if (!exists(folder + "/tokenizer.json") && !exists(folder + "/tokenizer.model")) {
    return "The folder has no tokenizer.json and no tokenizer.model";
  }
  try {
    open_tokenizer(Path{folder});
    return "";
  } catch (const Error& error) {
    return format("The folder's tokenizer cannot be read ({})", error.what());
  }
}

// Adds the keys of `data` for texts.
void add_text(const std::string& folder, const std::string& relative, const HuggingFaceNetwork& network, Node& data,
              HuggingFaceImport& result) {
  const std::int64_t positions = sample_of(network)[0];
  append(data, "dataset", scalar_node(network.preset == "bert" ? "text_classification" : "text"));
  if (const std::string problem = tokenizer_problem(folder); problem.empty()) {
    append(data, "tokenizer", scalar_node(relative, true));
  } else {
    result.notes.push_back(problem + ": set `data.tokenizer`.");
  }
  append(data, "positions", number_node(positions));
  if (positions < network.sample[0]) {
    result.notes.push_back(format("Samples have {} here; the network was made for up to {}: see `positions`.",
                                  counted(positions, "position"), grouped(network.sample[0])));
  }
}

// Adds the keys of `data` for images, with which the network computes predictions of images before it has data.
void add_images(const std::string& folder, const HuggingFaceNetwork& network, Node& data, HuggingFaceImport& result) {
  append(data, "dataset", scalar_node("image_folder"));
  append(data, "path", scalar_node("images"));
  Node shape = sequence_node();
  for (const std::int64_t size : network.sample.sizes()) shape.items.push_back(number_node(size));
  append(data, "shape", std::move(shape));
  if (const Node* classes = network.with.find("classes")) append(data, "classes", *classes);
  append(data, "transform", image_steps(folder, network.sample, result.notes));
  result.notes.emplace_back(
      "`path` names the folder of images for training; predictions do not need it. If it has other");
  result.notes.emplace_back("classes, a config sets their number, and the last layer begins with initial values:");
  result.notes.emplace_back(
      "`data: {path: images/, classes: N}`, `model: {with: {classes: N}, weights: {skip: [predictions/*]}}`.");
}

// `model.weights`; a map if a config that includes this one may add a key.
Node weights_node(const std::string& folder, const std::vector<std::string>& skipped, bool adds_key) {
  if (skipped.empty() && !adds_key) return scalar_node(folder, true);
  Node weights = map_node(), skip = sequence_node();
  for (const std::string& pattern : skipped) skip.items.push_back(scalar_node(pattern, true));
  append(weights, "file", scalar_node(folder, true));
  if (!skipped.empty()) append(weights, "skip", std::move(skip));
  return weights;
}

}  // namespace

std::string imported_name(const std::string& folder) { return absolute_path(folder).filename().string(); }

HuggingFaceImport import_hugging_face(const std::string& folder, const std::string& config_folder) {
  const HuggingFaceNetwork network = read_hugging_face_config(folder);
  const std::string relative = absolute_path(folder).lexically_proximate(absolute_path(config_folder)).string();
  HuggingFaceImport result;
  result.preset = network.preset;
  const std::vector<std::string> skipped = skipped_tensors(folder, network);
  check_network(folder, network, skipped, result);
  Node data = map_node(), model = map_node(), train = map_node(), document = map_node();
  if (has_text(network)) {
    add_text(folder, relative, network, data, result);
  } else {
    add_images(folder, network, data, result);
  }
  append(model, "preset", scalar_node(network.preset));
  append(model, "with", network.with);
  append(model, "weights", weights_node(relative, skipped, !has_text(network) || !network.until.empty()));
  if (network.until.empty()) {
    append(train, "loss", scalar_node("sparse_categorical_crossentropy"));
  } else {
    append(model, "until", scalar_node(network.until));
    result.notes.push_back(format("The network ends with '{}' of the preset {}.", network.until, network.preset));
    result.notes.emplace_back(
        "A classifier adds `model: {until: predictions, with: {classes: N}, weights: {allow_missing: true}}`.");
  }
  append(document, "data", std::move(data));
  append(document, "model", std::move(model));
  if (!train.entries.empty()) append(document, "train", std::move(train));
  result.config = header(imported_name(folder), has_text(network), result.notes) + to_yaml(document) + "\n";
  return result;
}

}  // namespace trainctl
