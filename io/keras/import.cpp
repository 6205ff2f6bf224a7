// Writes a config for the layers of a Keras network, builds the network and loads its weights.
#include "io/keras/import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "core/base/table.h"
#include "core/layers/model/model.h"
#include "core/layers/model/model_options.h"
#include "core/layers/model/names.h"
#include "io/keras/compiled.h"
#include "io/keras/layers.h"
#include "io/keras/model_writer.h"
#include "io/keras/network.h"
#include "io/weights/saved_model.h"
#include "io/weights/weights_file.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

void set_file(Node& node, const std::string& path) {
  node.location.file = path;
  for (Node& item : node.items) set_file(item, path);
  for (Node::Entry& entry : node.entries) {
    entry.key_location.file = path;
    set_file(entry.value, path);
  }
}

// Returns `model.weights` with the imported file itself as the source.
Node weights_node(const std::string& path, const std::vector<RenamedLayer>& renamed,
                  const std::vector<std::string>& skipped) {
  Node rules = sequence_node(), names = map_node(), weights = map_node(), skip = sequence_node();
  for (const RenamedLayer& layer : renamed) {
    rules.items.push_back(scalar_node(format("^{}$ -> {}", layer.name, layer.keras)));
  }
  for (const std::string& pattern : skipped) skip.items.push_back(scalar_node(pattern));
  if (!renamed.empty()) append(names, "keras", std::move(rules));
  append(weights, "file", scalar_node(std::filesystem::absolute(path).string(), true));
  append(weights, "names", std::move(names));
  append(weights, "skip", std::move(skip));
  return weights;
}

Node shape_node(const Shape& shape) {
  Node node = sequence_node();
  for (const std::int64_t size : shape.sizes()) node.items.push_back(scalar_node(std::to_string(size)));
  return node;
}

// Returns the comments at the beginning of the config.
std::string header(const std::string& path, const KerasNetwork& network, const std::vector<std::string>& notes) {
  std::string text = format("# The network of {}, imported by trainctl. A config uses it with `include`, and adds\n",
                            std::filesystem::path(path).filename().string());
  text += "# the data and the rest of the training:\n#\n#   include: THIS_FILE\n#   data: {dataset: ..., path: ...}\n";
  text += "#   train: {loss: ..., batch_size: 32, epochs: 5}\n#\n";
  for (const std::size_t i : network.inputs) {
    const LayerUse& input = network.uses[i];
    const std::string of = network.inputs.size() > 1 ? " of input " + input.name : "";
    text += format("# Samples{}: {}\n", of, flow_text(shape_node(input.sample)));
  }
  for (const std::string& note : notes) text += "# " + note + "\n";
  return text;
}

constexpr std::int64_t max_listed_channels = 10'000;

// Returns the values of the layer's tensor, which is found by its number or name; a null node if the file has no such
// tensor.
Node values_of(const WeightsFile& file, const std::string& layer, int number, const std::string& name) {
  const auto& tensors = file.tensors();
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const FileTensor& tensor) {
    return tensor.name == format("{}/{}", layer, number) || tensor.name == layer + "/" + name;
  });
  if (found == tensors.end() || found->shape.count() > max_listed_channels) return {};
  std::vector<float> values(static_cast<std::size_t>(found->shape.count()));
  file.read(static_cast<std::size_t>(found - tensors.begin()), values.data());
  Node list = sequence_node();
  for (const float value : values) list.items.push_back(scalar_node(format("{}", value)));
  return list;
}

// Adds mean and variance to the options of Normalization layers unless the user has set them: reads the values that
// `adapt` has measured from the weights in the file. Returns patterns of the tensors that were read. Reports layers
// without mean and variance in the file.
std::vector<std::string> add_statistics(const std::string& path, const KerasNetwork& network,
                                        std::vector<Translation>& translations, Reader& reader) {
  std::unique_ptr<WeightsFile> file;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    if (translations[i].layers.empty()) continue;
    TranslatedLayer& layer = translations[i].layers[0];
    if (layer.kind != "normalization" || layer.options.find("mean") != nullptr) continue;
    if (file == nullptr) file = open_weights(path);
    const std::string& own = network.uses[i].name;
    std::vector<std::string> names{own};
    for (const RenamedLayer& renamed : network.renamed) {
      if (renamed.name == own) names = {renamed.keras};
    }
    Node mean, variance;
    for (const std::string& name : names) {
      if (!mean.is_null()) break;
      mean = values_of(*file, name, 0, "mean");
      variance = values_of(*file, name, 1, "variance");
      if (!mean.is_null()) taken.insert(name + "/*");
    }
    if (mean.is_null() || variance.is_null()) {
      reader.error({path}, format("Normalization '{}': the file has no mean and variance for this layer: call adapt() "
                                  "and save the network again",
                                  own));
      continue;
    }
    append(layer.options, "mean", std::move(mean));
    append(layer.options, "variance", std::move(variance));
  }
  return {taken.begin(), taken.end()};
}

class Importer {
 public:
  Importer(const std::string& path, const std::string& weights_file, const std::vector<Shape>& open_shapes)
      : path_(path), weights_file_(weights_file), open_shapes_(open_shapes) {}

  ImportedNetwork run() {
    try {
      return import(read_saved_model(path_));
    } catch (const Json::exception& error) {
      throw Error(ErrorKind::data, SourceLocation{path_},
                  format("not a network saved by Keras: {}", json_problem(error)),
                  "save the network again, with model.save(\"network.keras\")");
    }
  }

 private:
  ImportedNetwork import(const Json& saved) {
    network_ = read_network(saved, open_shapes_, path_, reader_);
    const std::string version = saved.value("keras_version", "");
    std::set<const Json*> reported;  // errors of a layer are reported for its first use only
    for (const LayerUse& use : network_.uses) {
      Reader ignored_errors;
      const bool first = use.layer != nullptr && reported.insert(use.layer).second;
      translations_.push_back(translated(use, version, first ? reader_ : ignored_errors));
    }
    statistics_ = add_statistics(path_, network_, translations_, reader_);
    if (network_.outputs.size() == 1 && network_.uses[network_.outputs[0]].layer == nullptr) {
      reader_.error({path_}, "the network returns its input as its output: there is nothing to compute");
    }
    reader_.throw_if_failed();

    WrittenModel written = write_model(network_, translations_);
    Node& model = written.model;
    ImportedNetwork result;
    note_open_inputs();
    note_left_out();
    note_masks();
    note_precision();
    build(model, written.layers, result);
    append(model, "weights", scalar_node(weights_file_));
    const CompiledWith compiled = compiled_with(saved.value("compile_config", Json()));
    for (const std::string& other : compiled.other) {
      notes_.push_back("Compiled in Keras with " + other + ": set the corresponding keys of `train`.");
    }
    if (Node freeze = freeze_node(); !freeze.items.empty()) append(model, "freeze", std::move(freeze));
    Node document = map_node();
    append(document, "model", std::move(model));
    if (!compiled.train.entries.empty()) append(document, "train", compiled.train);
    result.config = header(path_, network_, notes_) + to_yaml(document);
    result.notes = std::move(notes_);
    return result;
  }

  // Translates the layer of a use, which is null for an input. Reports a layer that is not as Keras writes it.
  Translation translated(const LayerUse& use, const std::string& version, Reader& reader) const {
    if (use.layer == nullptr) return {};
    try {
      return translate(use, version, path_, reader);
    } catch (const Json::exception& error) {
      reader.error({path_}, format("layer '{}' is not as Keras writes it: {}; save the network again, with "
                                   "model.save(\"network.keras\")",
                                   use.name, json_problem(error)));
      return {};
    }
  }

  void note_open_inputs() {
    for (const std::size_t i : network_.inputs) {
      const LayerUse& input = network_.uses[i];
      if (!input.is_open) continue;
      notes_.push_back(
          format("Input '{}' leaves dimensions open (None), which were taken as {} here: {}. Samples may have other "
                 "sizes if the layers allow them; --input-shape checks the network with another size.",
                 input.name, assumed_size, flow_text(shape_node(input.sample))));
    }
  }

  void note_left_out() {
    std::string names;
    for (const std::string& layer : network_.left_out) names += (names.empty() ? "" : ", ") + layer;
    if (names.empty()) return;
    notes_.push_back(
        format("Left out, since these layers do nothing in prediction: {}. For training, `data.augment` changes images "
               "at random.",
               names));
  }

  void note_masks() {
    static const std::set<std::string> heads{"multi_head_attention", "group_query_attention"};
    static const std::set<std::string> others{"attention", "additive_attention", "transformer_encoder",
                                              "transformer_decoder"};
    bool attends = false, has_heads = false, pads = false;
    for (const Translation& translation : translations_) {
      for (const TranslatedLayer& layer : translation.layers) {
        has_heads = has_heads || heads.contains(layer.kind);
        attends = attends || has_heads || others.contains(layer.kind);
        pads = pads || layer.kind == "masking" || layer.options.find("mask_zero") != nullptr;
      }
    }
    if (!attends || !pads) return;
    std::string note;
    if (has_heads) {
      note =
          "Padding masks go on after layers of attention with heads. In Keras 3.15 such a layer removes the masks of "
          "its inputs, so that layers that also read these inputs do not see them; values at padding may differ there, "
          "and with them the result of a layer without masks that reads padding, such as Flatten or "
          "GlobalMaxPooling1D. ";
    }
    notes_.push_back(
        note +
        "A query that sees no key, as in a sample that is only padding, gets zeros from attention here; in "
        "Keras it gets the mean of all values.");
  }

  // Says that results differ by rounding from those of layers that Keras computes in a shorter dtype.
  void note_precision() {
    std::set<std::string> dtypes, layers;
    for (std::size_t i = 0; i < translations_.size(); ++i) {
      if (translations_[i].half_precision.empty()) continue;
      dtypes.insert(translations_[i].half_precision);
      layers.insert(network_.uses[i].name);
    }
    if (layers.empty()) return;
    std::string names;
    for (const std::string& dtype : dtypes) names += (names.empty() ? "" : " and ") + dtype;
    notes_.push_back(format(
        "Keras computes {} in {}; here all layers are computed in float32, or as `train.precision` sets. The "
        "outputs differ by the rounding.",
        layers.size() == 1 ? "the layer '" + *layers.begin() + "'" : counted(std::ssize(layers), "layer"), names));
  }

  // Adds the notes to the errors: layers that do not fit each other may fit with samples of another size.
  void throw_if_failed() {
    if (!reader_.ok()) {
      for (const std::string& note : notes_) reader_.error({path_}, note);
    }
    reader_.throw_if_failed();
  }

  void build(Node model, const std::vector<WrittenLayer>& layers, ImportedNetwork& result) {
    append(model, "weights", weights_node(path_, network_.renamed, statistics_));
    set_file(model, path_);
    ModelOptions options;
    section_of<ModelOptions>().read(model, reader_, &options);
    reader_.throw_if_failed();
    options.weights->file.value.text = path_;  // errors name the file as the user did
    BuildOptions build_options{.inputs = {}, .training = false};
    for (const std::size_t i : network_.inputs) {
      ModelInput input{network_.inputs.size() == 1 ? "" : network_.uses[i].name, network_.uses[i].sample, {}};
      if (token_count(options, input.name) > 0) input.format.dtype = DType::int32;
      build_options.inputs.push_back(std::move(input));
    }
    const BuiltModel built = build_model(options, build_options, reader_);
    check_axes(built, layers);
    throw_if_failed();
    result.weights = load_weights(
        *options.weights, built.graph, 1, [](const std::string&) { return ""; }, WeightsUse::import);
    result.layers = built.layers.size();
    for (const LayerLine& line : built.layers) {
      result.parameters += line.parameters;
      if (line.parameters > 0) weighted_.insert(without_uses(line.name));
    }
  }

  // Checks that each `axis` is the last axis. Without the parts of layers, whose names have a '/', `built.layers` has
  // one line for each of the config's layers, up to the first that could not be built.
  void check_axes(const BuiltModel& built, const std::vector<WrittenLayer>& layers) {
    std::vector<const LayerLine*> lines;
    for (const LayerLine& line : built.layers) {
      if (line.name.find('/') == std::string::npos) lines.push_back(&line);
    }
    for (std::size_t i = 0; i < std::min(lines.size(), layers.size()); ++i) {
      for (const std::int64_t axis : layers[i].axes) {
        if (axis == -1 || axis == lines[i]->output.rank()) continue;
        const LayerUse& use = network_.uses[layers[i].use];
        reader_.error({path_},
                      format("{} '{}': axis: {} has no counterpart in trainctl, only the last axis ({})",
                             use.layer->at("class_name").get<std::string>(), use.name, axis, lines[i]->output.rank()));
      }
    }
  }

  // Returns the layers whose weights do not train; an empty list if no layer would train.
  Node freeze_node() {
    Node freeze = sequence_node();
    std::set<std::string> frozen;
    for (std::size_t i = 0; i < network_.uses.size(); ++i) {
      const LayerUse& use = network_.uses[i];
      if (use.layer == nullptr || translations_[i].trainable || !weighted_.contains(use.name)) continue;
      if (frozen.insert(use.name).second) freeze.items.push_back(scalar_node(use.name));
    }
    if (frozen.size() < weighted_.size()) return freeze;
    if (!frozen.empty()) notes_.push_back("No layer was trainable in Keras; here all layers are: see `freeze`.");
    return sequence_node();
  }

  const std::string& path_;
  const std::string& weights_file_;
  const std::vector<Shape>& open_shapes_;
  Reader reader_;
  KerasNetwork network_;
  std::vector<Translation> translations_;
  std::vector<std::string> statistics_;  // patterns of tensors that the config holds as options
  std::set<std::string> weighted_;       // layers with parameters
  std::vector<std::string> notes_;
};

}  // namespace

ImportedNetwork import_keras(const std::string& path, const std::string& weights_file,
                             const std::vector<Shape>& open_shapes) {
  return Importer(path, weights_file, open_shapes).run();
}

}  // namespace trainctl
