// Walks through Keras' Sequential and Functional networks and the networks nested in them.
#include "io/keras/network.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/layers/model/names.h"
#include "io/keras/calls.h"
#include "io/keras/masks.h"
#include "io/keras/operations.h"
#include "io/keras/values.h"
#include "io/weights/keras_layers.h"

namespace trainctl {
namespace {

constexpr std::size_t max_uses = 5'000;
constexpr int max_nesting = 32;

// Whether layers of this class change their input only in training, so that the import leaves them out.
bool does_nothing_in_prediction(const std::string& kind) {
  static const std::set<std::string> kinds{"RandomFlip",
                                           "RandomRotation",
                                           "RandomZoom",
                                           "RandomTranslation",
                                           "RandomHeight",
                                           "RandomWidth",
                                           "RandomContrast",
                                           "RandomHue",
                                           "RandomSaturation",
                                           "RandomShear",
                                           "RandomBrightness",
                                           "RandomSharpness",
                                           "RandomInvert",
                                           "RandomGaussianBlur",
                                           "RandomColorJitter",
                                           "RandomGrayscale",
                                           "RandomPosterization",
                                           "RandomPerspective",
                                           "RandomElasticTransform",
                                           "RandomErasing",
                                           "RandomColorDegeneration",
                                           "ActivityRegularization"};
  return kinds.contains(kind);
}

class Walk {
 public:
  Walk(const std::vector<Shape>& open_shapes, const std::string& path, Reader& reader)
      : open_shapes_(open_shapes), path_(path), reader_(reader) {}

  KerasNetwork run(const Json& saved) {
    const std::string kind = saved.at("class_name").get<std::string>();
    if (!is_keras_network(kind)) {
      reader_.error({path_},
                    format("the network is a {}, but only Sequential and Functional networks can be imported", kind));
      return {};
    }
    network_.outputs = expand(saved, "", "", {}, 0);
    for (std::size_t& output : network_.outputs) {
      if (!network_.uses[output].state.empty()) output = as_layer(output);
    }
    if (open_shapes_used_ < open_shapes_.size()) {
      reader_.error({path_}, format("--input-shape is given {}, but the network has {} with open dimensions (None)",
                                    counted(open_shapes_.size(), "time"), counted(open_shapes_used_, "input")));
    }
    prune();
    return std::move(network_);
  }

 private:
  using Uses = std::vector<std::size_t>;

  // Adds the uses of a network and returns its outputs. `inputs` are the inputs of a nested network; the outermost
  // network adds its own.
  Uses expand(const Json& saved, const std::string& prefix, const std::string& location, Uses inputs, int level) {
    if (level > max_nesting) damaged("its networks are nested too deeply");
    count();
    const Json& config = saved.at("config");
    return saved.at("class_name") == "Sequential" ? expand_sequential(saved, config, prefix, location, inputs, level)
                                                  : expand_functional(config, prefix, location, inputs, level);
  }

  Uses expand_sequential(const Json& saved, const Json& config, const std::string& prefix, const std::string& location,
                         Uses last, int level) {
    // In Keras 1 the config is the list of layers itself.
    const Json& layers = config.is_array() ? config : config.at("layers");
    if (!layers.is_array()) damaged("its layers are not a list");
    const bool has_input_layer = !layers.empty() && layers.at(0).at("class_name") == "InputLayer";
    if (level == 0 && !has_input_layer) last = {add_input("input", open_shape(saved, config, layers))};
    for (const Json& layer : layers) {
      count();
      if (layer.at("class_name") == "InputLayer") {
        if (level == 0) last = {add_input(layer_name(layer), shape_of(layer.at("config")))};
        continue;
      }
      last = use(layer, prefix, location, last, {}, level);
    }
    return last;
  }

  // Returns the input shape [null, ...] of a Sequential network without an input layer.
  static Json open_shape(const Json& saved, const Json& config, const Json& layers) {
    if (config.is_object() && config.contains("build_input_shape")) return config["build_input_shape"];
    if (saved.contains("build_config")) return saved["build_config"].value("input_shape", Json());
    return layers.empty() ? Json() : shape_of(layers.at(0).at("config"));
  }

  static Json shape_of(const Json& config) {
    for (const char* key : {"batch_shape", "batch_input_shape"}) {
      if (config.contains(key)) return config[key];
    }
    return {};
  }

  Uses expand_functional(const Json& config, const std::string& prefix, const std::string& location, const Uses& inputs,
                         int level) {
    struct Node {
      const Json* layer = nullptr;
      std::size_t number = 0;
      CallArguments arguments;
    };
    std::map<std::pair<std::string, std::size_t>, Uses> done;
    std::vector<Node> waiting;
    std::map<std::string, const Json*> layers;
    for (const Json& layer : config.at("layers")) {
      layers[layer_name(layer)] = &layer;
      const Json nodes = layer.value("inbound_nodes", Json::array());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        count();
        waiting.push_back({&layer, i, arguments_of(nodes[i])});
      }
    }
    const std::vector<LayerOutput> listed_outputs = outputs_in(config.at("output_layers"));
    const auto numbers = call_numbers([&](const auto& visit) {
      for (const Node& node : waiting) {
        for (const LayerOutput& output : node.arguments.tensors) visit(output);
      }
      for (const LayerOutput& output : listed_outputs) visit(output);
    });
    const std::vector<LayerOutput> listed_inputs = outputs_in(config.at("input_layers"));
    for (std::size_t i = 0; i < listed_inputs.size(); ++i) {
      const auto layer = layers.find(listed_inputs[i].layer);
      if (layer == layers.end() || (level > 0 && i >= inputs.size()))
        damaged("an input refers to a missing layer, or is not connected");
      done[{listed_inputs[i].layer, listed_inputs[i].node}] = {
          level > 0 ? inputs[i] : add_input(listed_inputs[i].layer, shape_of(layer->second->at("config")))};
    }
    const auto find = [&](const LayerOutput& output) -> std::optional<std::size_t> {
      const auto found = done.find({output.layer, output.node});
      if (found == done.end()) return std::nullopt;
      if (output.number < found->second.size()) return found->second[output.number];
      reader_.error({path_}, format("layer '{}': a layer with several outputs has no counterpart in trainctl",
                                    prefix + output.layer));
      return found->second.at(0);
    };
    const auto found_among = [&](const std::vector<LayerOutput>& listed) {
      Uses uses;
      for (const LayerOutput& output : listed) {
        if (const auto found = find(output)) uses.push_back(*found);
      }
      return uses;
    };
    for (std::size_t before = waiting.size() + 1; before != waiting.size();) {
      before = waiting.size();
      std::vector<Node> later;
      for (Node& node : waiting) {
        const Uses from = found_among(node.arguments.tensors), masks = found_among(node.arguments.masks);
        const bool complete =
            from.size() == node.arguments.tensors.size() && masks.size() == node.arguments.masks.size();
        if (!complete || from.empty()) {
          later.push_back(std::move(node));
          continue;
        }
        const std::string name = layer_name(*node.layer);
        const auto known = numbers.find(name);
        const bool is_known = known != numbers.end() && node.number < known->second.size();
        const std::size_t number = is_known ? known->second[node.number] : node.number;
        if (!are_of_padding(masks, from, network_.uses)) node.arguments.other = "mask";
        done[{name, number}] = use(*node.layer, prefix, location, from, node.arguments, level);
      }
      waiting = std::move(later);
    }
    Uses outputs;
    for (const LayerOutput& output : listed_outputs) {
      const auto found = find(output);
      if (!found)
        damaged(format("no layer computes the output '{}', or layers depend on each other in a cycle",
                       prefix + output.layer));
      outputs.push_back(*found);
    }
    if (outputs.empty()) damaged("it has no outputs");
    return outputs;
  }

  // Returns, for each layer, the numbers that Keras gave to its saved calls, in ascending order. The numbers may have
  // gaps, since some versions of Keras also count the creation of a network or calls in other networks. The numbers are
  // not saved with the calls, but other layers refer to every saved call by its number.
  template <class References>
  static std::map<std::string, std::vector<std::size_t>> call_numbers(const References& for_each_reference) {
    std::map<std::string, std::set<std::size_t>> found;
    for_each_reference([&](const LayerOutput& output) { found[output.layer].insert(output.node); });
    std::map<std::string, std::vector<std::size_t>> numbers;
    for (const auto& [layer, own] : found) numbers[layer].assign(own.begin(), own.end());
    return numbers;
  }

  // Adds one use of a layer, or the uses of all layers of a nested network. Returns the outputs.
  Uses use(const Json& layer, const std::string& prefix, const std::string& location, const Uses& from,
           const CallArguments& arguments, int level) {
    const std::string name = layer_name(layer), kind = layer_class(layer);
    if (is_operation(layer)) {
      return {add({config_name(prefix, location, name), &layer, from, {}, false, arguments.operands, arguments.other})};
    }
    if (from.size() == 1 && does_nothing_in_prediction(kind)) {
      const std::string left_out = format("{} '{}'", kind, prefix + name);
      if (left_out_.insert(left_out).second) network_.left_out.push_back(left_out);
      return from;
    }
    static const std::set<std::string> causal{"MultiHeadAttention", "GroupQueryAttention", "Attention",
                                              "AdditiveAttention"};
    std::string other = arguments.other;
    if (arguments.use_causal_mask && !causal.contains(kind) &&
        arguments.use_causal_mask != (kind == "TransformerDecoder")) {
      other = "use_causal_mask";
    }
    for (const std::optional<double>& operand : arguments.operands) {
      if (operand) other = format("{}", *operand);
    }
    if (!other.empty()) {
      reader_.error({path_},
                    format("{} '{}': its call argument {} has no counterpart in trainctl", kind, prefix + name, other));
    }
    if (is_keras_network(kind)) return expand(layer, prefix + name + ".", location + name + "/", from, level + 1);
    if (kind == "Bidirectional") return use_bidirectional(layer, prefix, location, from);
    if (std::optional<Json> recurrent = layer_of_cell(layer)) {
      network_.made_layers.push_back(std::make_shared<const Json>(std::move(*recurrent)));
      return use(*network_.made_layers.back(), prefix, location, from, arguments, level);
    }
    LayerUse own{config_name(prefix, location, name, shared_layer(layer)), &layer, from};
    if (kind == "SpectralNormalization" || kind == "TimeDistributed") rename_inner(own.name);
    own.use_causal_mask = causal.contains(kind) && arguments.use_causal_mask.value_or(false);
    const Uses outputs{add(std::move(own))};
    const bool recurrent = has_cell_state(kind) || kind == "GRU" || kind == "SimpleRNN";
    return recurrent && layer.at("config").value("return_state", false) ? with_states(outputs[0], kind) : outputs;
  }

  // Renames the layer inside a layer like the outer one.
  void rename_inner(const std::string& outer) {
    const auto of = [&](const std::string& name) {
      return std::find_if(network_.renamed.begin(), network_.renamed.end(),
                          [&](const RenamedLayer& renamed) { return renamed.name == name; });
    };
    const auto renamed = of(outer);
    if (renamed == network_.renamed.end() || of(outer + "/layer") != network_.renamed.end()) return;
    const std::string keras = renamed->keras + "/layer";
    network_.renamed.push_back({outer + "/layer", keras});
  }

  static bool has_cell_state(const std::string& kind) { return kind == "LSTM" || kind.starts_with("ConvLSTM"); }

  // Adds the states that a recurrent layer returns; returns all its outputs.
  Uses with_states(std::size_t layer, const std::string& kind) {
    Uses outputs{layer};
    for (const char* state : {"hidden_state", "cell_state"}) {
      if (!has_cell_state(kind) && outputs.size() == 2) break;
      LayerUse use{network_.uses[layer].name, nullptr, {layer}};
      use.state = state;
      outputs.push_back(add(std::move(use)));
    }
    return outputs;
  }

  // Adds a layer that returns a state, which is an output of the network.
  std::size_t as_layer(std::size_t state) {
    const std::string name = network_.uses[state].name + "_" + network_.uses[state].state;
    Json identity{{"class_name", "Identity"}, {"config", {{"name", name}, {"trainable", true}}}};
    network_.made_layers.push_back(std::make_shared<const Json>(std::move(identity)));
    return add({config_name("", "", name), network_.made_layers.back().get(), {state}});
  }

  // Adds a Bidirectional layer as its two layers and a layer that merges their outputs.
  Uses use_bidirectional(const Json& layer, const std::string& prefix, const std::string& location, const Uses& from) {
    const std::string name = layer_name(layer);
    const Json &config = layer.at("config"), &inner = config.at("layer");
    if (from.size() != 1) {
      reader_.error({path_}, format("Bidirectional '{}': initial_state has no counterpart in trainctl", prefix + name));
    }
    const auto backward_layer = config.find("backward_layer");
    Json forward = inner,
         backward = backward_layer != config.end() && !backward_layer->is_null() ? *backward_layer : inner;
    if (backward_layer == config.end() || backward_layer->is_null()) {
      const auto direction = inner.at("config").find("go_backwards");
      backward["config"]["go_backwards"] = direction == inner.at("config").end() || *direction == false;
    }
    // Keras reverses the output of the backward layer, so that both outputs have the order of the input.
    if (backward.at("config").value("return_sequences", false)) backward["config"]["reverse_output"] = true;
    static const std::map<std::string, std::string> merges{
        {"concat", "Concatenate"}, {"sum", "Add"}, {"mul", "Multiply"}, {"ave", "Average"}};
    const Json mode = config.value("merge_mode", Json("concat"));
    const auto merge = merges.find(mode.is_string() ? mode.get<std::string>() : "");
    if (merge == merges.end()) {
      reader_.error({path_}, format("Bidirectional '{}': merge_mode: {} has no counterpart in trainctl", prefix + name,
                                    json_text(mode)));
      return from;
    }
    Uses both;
    for (auto& [role, json] : {std::pair<std::string, Json&>("forward_layer", forward), {"backward_layer", backward}}) {
      if (const auto trainable = config.find("trainable"); trainable != config.end()) {
        json["config"]["trainable"] = *trainable;
      }
      network_.made_layers.push_back(std::make_shared<const Json>(std::move(json)));
      both.push_back(add(
          {config_name(prefix + name + ".", location + name + "/", role), network_.made_layers.back().get(), from}));
    }
    Json merged{{"class_name", merge->second}, {"config", {{"name", name}, {"trainable", true}}}};
    network_.made_layers.push_back(std::make_shared<const Json>(std::move(merged)));
    return {add({config_name(prefix, location, name), network_.made_layers.back().get(), both})};
  }

  // Returns the name in the config of the layer `name` in the network at `location` ("outer/inner/", or ""). All uses
  // of a layer have the same name, even if several networks share the layer.
  std::string config_name(const std::string& prefix, const std::string& location, const std::string& name,
                          const std::string& shared = "") {
    const auto [known, is_new] = names_.try_emplace(shared.empty() ? location + "\n" + name : "\n" + shared);
    if (!is_new) return known->second;
    const std::string usual = as_name(prefix + name);
    std::string own = usual;
    for (int number = 2; !taken_.insert(own).second; ++number) own = format("{}_{}", usual, number);
    if (own != name || !location.empty()) {
      // In rules for names, { has a special meaning.
      if ((location + name).find('{') != std::string::npos) {
        reader_.error({path_}, format("layer '{}': a name with a {{ cannot be imported: rename the layer in Keras",
                                      location + name));
      }
      network_.renamed.push_back({own, location + name});
    }
    return known->second = own;
  }

  std::size_t add_input(const std::string& name, const Json& shape) {
    if (!shape.is_array() || shape.size() < 2) {
      reader_.error({path_}, format("input '{}' has no shape: build the network before saving it", name));
      return add({name, nullptr, {}, {1}});
    }
    const bool is_open = std::any_of(shape.begin() + 1, shape.end(), [](const Json& size) { return size.is_null(); });
    const bool is_given = is_open && open_shapes_used_ < open_shapes_.size();
    const Shape given = is_given ? open_shapes_[open_shapes_used_++] : Shape();
    std::vector<std::int64_t> sizes;
    bool fits = !is_given || given.rank() + 1 == static_cast<std::int64_t>(shape.size());
    for (std::size_t i = 1; i < shape.size(); ++i) {
      const std::int64_t open_size = is_given && fits ? given[static_cast<std::int64_t>(i) - 1] : assumed_size;
      sizes.push_back(shape[i].is_null() ? open_size : whole_number(shape[i]));
      if (sizes.back() < 1) damaged(format("input '{}' has a dimension of size {}", name, sizes.back()));
      fits = fits && (!is_given || sizes.back() == open_size);
    }
    if (!fits) {
      reader_.error({path_}, format("--input-shape {} does not fit input '{}', which is {} in Keras", to_string(given),
                                    name, shape.dump()));
    }
    network_.inputs.push_back(network_.uses.size());
    const std::string own = config_name("", "", name);
    taken_.insert("input");  // the name by which a config refers to the only input
    return add({own, nullptr, {}, Shape(std::move(sizes)), is_open && !is_given});
  }

  // Limits the work: a nested network may be used many times, and so may each network that is nested in it.
  void count() {
    if (++visited_ > max_uses) damaged(format("it has more than {} layers", max_uses));
  }

  std::size_t add(LayerUse use) {
    network_.uses.push_back(std::move(use));
    return network_.uses.size() - 1;
  }

  // Drops the uses that no output depends on; inputs stay.
  void prune() {
    std::vector<bool> needed(network_.uses.size());
    for (const Uses* kept : {&network_.inputs, &network_.outputs}) {
      for (const std::size_t use : *kept) needed[use] = true;
    }
    for (std::size_t i = needed.size(); i-- > 0;) {
      for (const std::size_t from : network_.uses[i].from) needed[from] = needed[from] || needed[i];
    }
    std::vector<std::size_t> number(needed.size());
    std::vector<LayerUse> uses;
    for (std::size_t i = 0; i < needed.size(); ++i) {
      number[i] = uses.size();
      if (needed[i]) uses.push_back(std::move(network_.uses[i]));
    }
    const auto renumber = [&](Uses& list) {
      for (std::size_t& use : list) use = number[use];
    };
    for (LayerUse& use : uses) renumber(use.from);
    renumber(network_.inputs);
    renumber(network_.outputs);
    network_.uses = std::move(uses);
  }

  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(ErrorKind::data, SourceLocation{path_}, "not a network saved by Keras: " + what,
                "save the network again, with model.save(\"network.keras\")");
  }

  const std::vector<Shape>& open_shapes_;
  std::size_t open_shapes_used_ = 0;
  const std::string& path_;
  Reader& reader_;
  KerasNetwork network_;
  std::size_t visited_ = 0;                   // number of uses of layers and networks
  std::map<std::string, std::string> names_;  // names in the config, by location and name
  std::set<std::string> taken_;               // all names of the config
  std::set<std::string> left_out_;
};

}  // namespace

KerasNetwork read_network(const Json& saved, const std::vector<Shape>& open_shapes, const std::string& path,
                          Reader& reader) {
  return Walk(open_shapes, path, reader).run(saved);
}

}  // namespace trainctl
