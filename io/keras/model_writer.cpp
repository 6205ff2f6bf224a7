// Writes the layers of a Keras network as layers of a config: their order, names and references.
#include "io/keras/model_writer.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/format.h"
#include "core/layers/model/names.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

bool has_weights(const std::string& kind) {
  if (kind == "stft_spectrogram" || kind == "spectral_normalization" || kind == "time_distributed") return true;
  const Section* section = layer_choices().find(kind);
  return section != nullptr && std::any_of(section->keys.begin(), section->keys.end(), [](const Key& key) {
           return key.name.ends_with("_initializer") || key.name == "init_values";  // of layer_scale
         });
}

// Whether the layer reads a list of layers.
bool merges(const std::string& kind) {
  const Key* from = layer_choices().find(kind)->find("from");
  return from->required;
}

class ModelWriter {
 public:
  ModelWriter(const KerasNetwork& network, const std::vector<Translation>& translations)
      : network_(network), translations_(translations), numbers_(network.uses.size()) {
    find_names();
  }

  WrittenModel write() {
    Node model = map_node();
    if (network_.inputs.size() > 1) {
      Node inputs = sequence_node();
      for (const std::size_t input : network_.inputs) inputs.items.push_back(scalar_node(network_.uses[input].name));
      append(model, "inputs", std::move(inputs));
    }
    for (std::size_t i = 0; i < network_.uses.size(); ++i) {
      if (network_.uses[i].layer != nullptr) add(i);
    }
    Node outputs = outputs_node();
    append(model, "layers", std::move(layers_));
    if (!outputs.items.empty()) append(model, "outputs", std::move(outputs));
    return {std::move(model), std::move(written_layers_)};
  }

 private:
  // Finds the layers that need a name: those with weights, those that other layers or outputs refer to, and those that
  // the network uses more than once.
  void find_names() {
    std::map<std::string, int> uses;
    for (std::size_t i = 0; i < network_.uses.size(); ++i) {
      const LayerUse& use = network_.uses[i];
      if (!use.state.empty()) {
        numbers_[i] = numbers_[use.from[0]];
        continue;
      }
      numbers_[i] = ++uses[use.name];
      if (use.layer == nullptr) continue;
      if (numbers_[i] > 1) named_.insert(use.name);
      const auto& own = translations_[i].layers;
      if (std::any_of(own.begin(), own.end(), [](auto& layer) { return has_weights(layer.kind); })) {
        named_.insert(use.name);
      }
      const bool needs_from = merges(own[0].kind) || !is_before(use.from, i);
      for (const std::size_t from : use.from) {
        if (needs_from) named_.insert(network_.uses[from].name);
      }
    }
    if (network_.outputs.size() < 2) return;
    for (const std::size_t output : network_.outputs) named_.insert(network_.uses[output].name);
  }

  // Whether a layer reads only the output of the layer before it in the config.
  bool is_before(const std::vector<std::size_t>& from, std::size_t use) const {
    if (from.size() != 1) return false;
    std::size_t before = use;
    while (before > 0 && network_.uses[before - 1].layer == nullptr) --before;
    const bool first = before == 0;
    if (first) return network_.inputs.size() == 1;
    return from[0] == before - 1;
  }

  std::string reference(std::size_t use) const {
    const LayerUse& layer = network_.uses[use];
    if (layer.layer == nullptr && layer.state.empty()) return network_.inputs.size() == 1 ? "input" : layer.name;
    const bool last_use = written_.at(layer.name) == numbers_[use];
    const std::string name = last_use ? layer.name : format("{}@{}", layer.name, numbers_[use]);
    return layer.state.empty() ? name : name + "/" + layer.state;
  }

  // Appends the inputs of a layer that has several, or reads a list.
  void append_inputs(const std::string& kind, const std::vector<std::size_t>& inputs, Node& options) const {
    Node list = sequence_node();
    for (const std::size_t source : inputs) list.items.push_back(scalar_node(reference(source)));
    const bool has_states = layer_choices().find(kind)->find("initial_state") != nullptr;
    if (has_states) {
      append(options, "from", list.items[0]);
      list.items.erase(list.items.begin());
    }
    append(options, has_states ? "initial_state" : "from", std::move(list));
  }

  void add(std::size_t i) {
    const LayerUse& use = network_.uses[i];
    const std::vector<TranslatedLayer>& own = translations_[i].layers;
    for (std::size_t k = 0; k < own.size(); ++k) {
      Node options = map_node();
      if (k + 1 == own.size() && named_.contains(use.name)) append(options, "name", scalar_node(use.name));
      if (k == 0 && (merges(own[k].kind) || use.from.size() > 1)) {
        append_inputs(own[k].kind, use.from, options);
      } else if (k == 0 && !is_before(use.from, i)) {
        append(options, "from", scalar_node(reference(use.from[0])));
      }
      for (const Node::Entry& entry : own[k].options.entries) append(options, entry.key, entry.value);
      add_layer(own[k].kind, std::move(options));
      written_layers_.push_back({i, k == 0 ? translations_[i].axes : std::vector<std::int64_t>{}});
    }
    written_[use.name] = numbers_[i];
  }

  void add_layer(const std::string& kind, Node options) {
    const Section& section = *layer_choices().find(kind);
    if (options.entries.size() == 1 && options.entries[0].key == section.shorthand) {
      options = Node(options.entries[0].value);
    }
    Node layer = map_node();
    if (options.is_map() && options.entries.empty()) {
      layer = scalar_node(kind);
    } else {
      append(layer, kind, std::move(options));
    }
    layers_.items.push_back(std::move(layer));
  }

  // Returns the names of the outputs if there are several. An output that is not the last use of its layer gets a
  // linear activation layer of its own.
  Node outputs_node() {
    Node outputs = sequence_node();
    if (network_.outputs.size() < 2) return outputs;
    std::set<std::string> listed;
    for (const std::size_t output : network_.outputs) {
      std::string name = network_.uses[output].name;
      const std::string source = reference(output);
      if (network_.uses[output].layer == nullptr || source != name || listed.contains(name)) {
        name = format("{}_output_{}", name, outputs.items.size() + 1);
        Node options = map_node();
        append(options, "name", scalar_node(name));
        append(options, "from", scalar_node(source));
        append(options, "activation", scalar_node("linear"));
        add_layer("activation", std::move(options));
        written_layers_.push_back({output, {}});
      }
      listed.insert(name);
      outputs.items.push_back(scalar_node(name));
    }
    return outputs;
  }

  const KerasNetwork& network_;
  const std::vector<Translation>& translations_;
  std::vector<int> numbers_;            // number of each use among the uses of its layer, from 1
  std::set<std::string> named_;         // layers whose names are written
  std::map<std::string, int> written_;  // number of uses of each layer so far
  Node layers_ = sequence_node();
  std::vector<WrittenLayer> written_layers_;
};

}  // namespace

WrittenModel write_model(const KerasNetwork& network, const std::vector<Translation>& translations) {
  return ModelWriter(network, translations).write();
}

}  // namespace trainctl
