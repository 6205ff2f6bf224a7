// Lists the layers of a saved network, and the weights of each layer.
#include "io/weights/keras_layers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>

#include "core/base/json.h"

namespace trainctl {
namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

// The weights of a class. "use_bias:bias" is a weight `bias` that exists unless the option use_bias is false.
struct ClassWeights {
  std::string_view class_name;
  std::array<std::string_view, 4> weights;
};

constexpr std::array<std::string_view, 4> linear_weights{"kernel", "use_bias:bias"};
constexpr std::array<std::string_view, 4> depthwise_weights{"depthwise_kernel", "use_bias:bias"};
constexpr std::array<std::string_view, 4> separable_weights{"depthwise_kernel", "pointwise_kernel", "use_bias:bias"};
constexpr std::array<std::string_view, 4> recurrent_weights{"kernel", "recurrent_kernel", "use_bias:bias"};
constexpr std::array<std::string_view, 4> affine_weights{"scale:gamma", "center:beta"};

constexpr ClassWeights classes[] = {
    {"Dense", linear_weights},
    {"Conv1D", linear_weights},
    {"Conv2D", linear_weights},
    {"Conv3D", linear_weights},
    {"Conv1DTranspose", linear_weights},
    {"Conv2DTranspose", linear_weights},
    {"Conv3DTranspose", linear_weights},
    {"DepthwiseConv1D", depthwise_weights},
    {"DepthwiseConv2D", depthwise_weights},
    {"SeparableConv1D", separable_weights},
    {"SeparableConv2D", separable_weights},
    {"SimpleRNN", recurrent_weights},
    {"LSTM", recurrent_weights},
    {"GRU", recurrent_weights},
    {"ConvLSTM1D", recurrent_weights},
    {"ConvLSTM2D", recurrent_weights},
    {"ConvLSTM3D", recurrent_weights},
    {"Embedding", {"embeddings"}},
    {"PReLU", {"alpha"}},
    {"BatchNormalization", {"scale:gamma", "center:beta", "moving_mean", "moving_variance"}},
    {"LayerNormalization", affine_weights},
    {"RMSNormalization", {"scale"}},
    {"GroupNormalization", affine_weights},
    {"LayerScale", {"gamma"}},
    {"STFTSpectrogram", {"real_kernel", "imag_kernel"}},
};

// Classes without weights that may be in an imported network.
constexpr std::string_view weightless[] = {
    "InputLayer",
    "Activation",
    "ReLU",
    "LeakyReLU",
    "ELU",
    "Softmax",
    "UnitNormalization",
    "Dropout",
    "GaussianNoise",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "Flatten",
    "Reshape",
    "Permute",
    "Add",
    "Subtract",
    "Multiply",
    "Average",
    "Maximum",
    "Minimum",
    "Concatenate",
    "Rescaling",
    "MaxPooling1D",
    "MaxPooling2D",
    "AveragePooling1D",
    "AveragePooling2D",
    "Cropping2D",
    "ZeroPadding2D",
    "UpSampling2D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "TFOpLambda",
    "SlicingOpLambda",
    "Identity",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "RandomFlip",
    "RandomRotation",
    "RandomZoom",
    "RandomTranslation",
    "RandomContrast",
    "RandomBrightness",
    "ActivityRegularization",
    "GaussianDropout",
    "AlphaDropout",
    "SpatialDropout3D",
    "Masking",
    "Resizing",
    "CenterCrop",
    "Dot",
    "ThresholdedReLU",
    "ZeroPadding1D",
    "Cropping1D",
    "UpSampling1D",
    "MaxPooling3D",
    "AveragePooling3D",
    "GlobalMaxPooling3D",
    "GlobalAveragePooling3D",
    "ZeroPadding3D",
    "Cropping3D",
    "UpSampling3D",
};

// The class of Keras' GroupQueryAttention in .h5 files, whose name its groups in .keras files have, too.
constexpr std::string_view grouped_attention = "GroupedQueryAttention";

using Variables = std::vector<LayerVariable>;

bool is_off(const Json& config, const std::string& option) {
  const auto found = config.find(option);
  return found != config.end() && *found == false;
}

// Returns the prefixes that a wrapper layer adds to the names of the inner layer's weights; empty if the class is not a
// wrapper.
std::vector<std::string> wrapper_prefixes(const std::string& kind) {
  if (kind == "Bidirectional") return {"forward_layer/", "backward_layer/"};
  if (kind == "TimeDistributed" || kind == "SpectralNormalization") return {"layer/"};
  return {};
}

std::optional<Variables> wrapper_variables(const Json& layer, const std::string& path) {
  const Json& inner = layer.at("config").at("layer");
  if (!wrapper_prefixes(layer_class(inner)).empty()) return std::nullopt;
  const auto variables = layer_variables(inner, path);
  if (!variables) return std::nullopt;
  Variables all;
  for (const std::string& prefix : wrapper_prefixes(layer_class(layer))) {
    for (LayerVariable variable : *variables) {
      variable.leaf.insert(0, prefix);
      all.push_back(std::move(variable));
    }
  }
  // SpectralNormalization lists the kernel of its inner layer and its own vector before the other weights.
  if (layer_class(layer) == "SpectralNormalization" && !all.empty()) {
    all.insert(all.begin() + 1, {path, "vector_u", false, shared_layer(layer)});
  }
  return all;
}

// The weights of a network of Keras 1 or 2: trained weights, and the others.
struct WeightLists {
  Variables trained, fixed;
};

bool is_trainable(const Json& layer) { return !is_off(layer.at("config"), "trainable"); }

bool append_all(const Json& layer, const std::string& path, WeightLists& lists) {
  if (!is_keras_network(layer_class(layer))) {
    const auto variables = layer_variables(layer, path);
    if (!variables) return false;
    for (const LayerVariable& variable : *variables) {
      (variable.is_trained && is_trainable(layer) ? lists.trained : lists.fixed).push_back(variable);
    }
    return true;
  }
  WeightLists own;
  for (const Json* inner : layers_of(layer)) {
    if (!append_all(*inner, path + "/" + layer_name(*inner), own)) return false;
  }
  const bool is_frozen = layer.at("config").is_object() && !is_trainable(layer);
  Variables& trained = is_frozen ? lists.fixed : lists.trained;
  trained.insert(trained.end(), own.trained.begin(), own.trained.end());
  lists.fixed.insert(lists.fixed.end(), own.fixed.begin(), own.fixed.end());
  return true;
}

// Appends the weights of a layer or network in the order of Keras 3: the weights of a network are in the order of its
// layers, even if the network is frozen.
bool append_in_order(const Json& layer, const std::string& path, Variables& all) {
  if (!is_keras_network(layer_class(layer))) {
    auto variables = layer_variables(layer, path);
    if (!variables) return false;
    for (LayerVariable& variable : *variables) {
      variable.is_trained = variable.is_trained && is_trainable(layer);
      all.push_back(std::move(variable));
    }
    return true;
  }
  const std::vector<const Json*> layers = layers_of(layer);
  return std::all_of(layers.begin(), layers.end(),
                     [&](const Json* inner) { return append_in_order(*inner, path + "/" + layer_name(*inner), all); });
}

}  // namespace

bool is_keras_network(const std::string& class_name) {
  return class_name == "Sequential" || class_name == "Functional" || class_name == "Model";
}

std::string layer_name(const Json& layer) {
  const Json& config = layer.at("config");
  // Operations of Keras 3.0 to 3.5 have their names beside their options.
  const bool is_beside = config.is_object() && !config.contains("name") && layer.contains("name");
  return (is_beside ? layer : config).at("name").get<std::string>();
}

std::string layer_class(const Json& layer) {
  const auto name = layer.at("class_name").get<std::string>();
  return name == grouped_attention ? "GroupQueryAttention" : name;
}

std::string shared_layer(const Json& layer) {
  const auto id = layer.find("shared_object_id");
  if (id == layer.end() || id->is_null()) return "";
  return id->dump() + " " + layer_class(layer) + " " + layer_name(layer);
}

std::optional<Json> layer_of_cell(const Json& layer) {
  if (layer_class(layer) != "RNN") return std::nullopt;
  const Json& config = layer.at("config");
  const Json& cell = config.at("cell");
  const std::string kind = cell.is_object() ? cell.value("class_name", "") : "";
  if (kind != "LSTMCell" && kind != "GRUCell" && kind != "SimpleRNNCell") return std::nullopt;
  Json made = layer;
  made["class_name"] = kind.substr(0, kind.rfind("Cell"));
  made["config"] = cell.at("config");
  for (const auto& [key, value] : config.items()) {
    if (key != "cell") made["config"][key] = value;
  }
  return made;
}

std::vector<const Json*> layers_of(const Json& network) {
  const Json& config = network.at("config");
  std::vector<const Json*> layers;
  // In Keras 1 the config is the list of layers itself.
  for (const Json& layer : config.is_array() ? config : config.at("layers")) {
    const auto module = layer.find("module");
    const bool is_operation =
        module != layer.end() && module->is_string() && module->get<std::string>().find(".ops.") != std::string::npos;
    if (!is_operation && layer_class(layer) != "InputLayer") layers.push_back(&layer);
  }
  return layers;
}

// Like Keras, inserts '_' by two regular expressions, one after the other: "(.)([A-Z][a-z]+)" and "([a-z])([A-Z])".
std::string usual_name(const std::string& class_name) {
  if (class_name == "GroupQueryAttention") return usual_name(std::string(grouped_attention));
  std::string words, name;
  for (std::size_t i = 0; i < class_name.size();) {
    words += class_name[i++];
    if (i + 1 >= class_name.size() || !is_upper(class_name[i]) || !is_lower(class_name[i + 1])) continue;
    words += '_';
    words += class_name[i++];
    while (i < class_name.size() && is_lower(class_name[i])) words += class_name[i++];
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && is_lower(words[i - 1]) && is_upper(words[i])) name += '_';
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(words[i])));
  }
  return name;
}

std::vector<std::string> weights_of_class(const std::string& usual) {
  std::vector<std::string> names;
  for (const ClassWeights& known : classes) {
    if (usual_name(std::string(known.class_name)) != usual) continue;
    for (const std::string_view weight : known.weights) {
      if (!weight.empty()) names.emplace_back(weight.substr(weight.find(':') + 1));
    }
  }
  return names;
}

std::optional<Variables> layer_variables(const Json& layer, const std::string& path) {
  const std::string kind = layer_class(layer), shared = shared_layer(layer);
  const Json& config = layer.at("config");
  Variables variables;
  if (kind == "Normalization") {  // its statistics are weights that adapt() measures, unless they are options
    const auto mean = config.find("mean");
    if (mean != config.end() && !mean->is_null()) return variables;
    for (const char* leaf : {"mean", "variance", "count"}) variables.push_back({path, leaf, false, shared});
    return variables;
  }
  if (!wrapper_prefixes(kind).empty()) return wrapper_variables(layer, path);
  if (const std::optional<Json> recurrent = layer_of_cell(layer)) return layer_variables(*recurrent, path);
  const auto known =
      std::find_if(std::begin(classes), std::end(classes), [&](auto& c) { return c.class_name == kind; });
  if (known == std::end(classes)) {
    const bool has_none = std::find(std::begin(weightless), std::end(weightless), kind) != std::end(weightless);
    return has_none ? std::optional(variables) : std::nullopt;
  }
  for (const std::string_view weight : known->weights) {
    if (weight.empty()) break;
    const std::size_t colon = weight.find(':');
    const bool is_optional = colon != std::string_view::npos;
    if (is_optional && is_off(config, std::string(weight.substr(0, colon)))) continue;
    const std::string leaf(is_optional ? weight.substr(colon + 1) : weight);
    variables.push_back({path, leaf, !leaf.starts_with("moving_"), shared});
  }
  return variables;
}

std::optional<Variables> variables_in_h5(const Json& layer, bool is_keras3) {
  const std::string name = layer_name(layer);
  const auto once = [](Variables all) {  // keeps the first use of a layer that is in several nested networks
    std::set<std::string> shared;
    std::erase_if(all, [&](const LayerVariable& one) {
      return !one.shared.empty() && !shared.insert(one.shared + "/" + one.leaf).second;
    });
    return all;
  };
  if (!is_keras3) {
    WeightLists lists;
    if (!append_all(layer, name, lists)) return std::nullopt;
    lists.trained.insert(lists.trained.end(), lists.fixed.begin(), lists.fixed.end());
    return once(std::move(lists.trained));
  }
  Variables all;
  if (!append_in_order(layer, name, all)) return std::nullopt;
  if (is_trainable(layer)) std::stable_partition(all.begin(), all.end(), [](auto& one) { return one.is_trained; });
  return once(std::move(all));
}

}  // namespace trainctl
