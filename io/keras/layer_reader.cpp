// Translates the options that many layers have: initializers, regularizers, activations, windows.
#include "io/keras/layer_reader.h"

#include <algorithm>
#include <array>

#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "io/keras/values.h"
#include "io/weights/keras_layers.h"

namespace trainctl {
namespace {

std::string shortened(const Json& value) {
  std::string text = json_text(value);
  if (text.size() > 100) text = text.substr(0, 100) + "...";
  return text;
}

Node options_of(const Json& config) {
  Node options = map_node();
  for (const auto& [key, value] : config.items()) {
    if (key != "seed" && key != "dtype" && !value.is_null()) append(options, key, plain_node(value));
  }
  return options;
}

}  // namespace

LayerReader::LayerReader(const LayerUse& use, const std::string& version, const std::string& path, Reader& reader)
    : use_(use), config_(use.layer->at("config")), version_(version), path_(path), reader_(reader) {}

std::string LayerReader::kind() const { return layer_class(*use_.layer); }

void LayerReader::error(const std::string& message) {
  reader_.error({path_}, format("{} '{}': {}", kind(), use_.name, message));
}

void LayerReader::no_counterpart(const std::string& key, const Json& value) {
  error(format("{}: {} has no counterpart in trainctl", key, shortened(value)));
}

const Json& LayerReader::take(const std::string& key) {
  static const Json absent;
  taken_.insert(key);
  const auto found = config_.find(key);
  if (found == config_.end()) return absent;
  const bool is_numpy = found->is_object() && found->value("class_name", "") == "__numpy__";  // Keras 2.12
  return is_numpy ? found->at("config").at("value") : *found;
}

double LayerReader::number(const std::string& key, double otherwise) {
  const Json& value = take(key);
  if (value.is_null() || value.is_number()) return value.is_null() ? otherwise : value.get<double>();
  error(format("'{}' must be a number, but is {}", key, json_kind(value)));
  return otherwise;
}

void LayerReader::copy(const std::string& key, Node& options) {
  static constexpr std::array windows{"kernel_size", "strides", "dilation_rate", "pool_size",
                                      "size",        "padding", "cropping"};
  const Json& value = take(key);
  if (value.is_null()) return;
  const auto append_known = [&](Node node) {  // a value that was reported is a null node
    if (!node.is_null()) append(options, key, std::move(node));
  };
  if (key.ends_with("_initializer")) {
    append_known(initializer(key, value));
  } else if (key.ends_with("_regularizer")) {
    if (Node penalty = regularizer(key, value); !penalty.entries.empty()) append(options, key, std::move(penalty));
  } else if (key.ends_with("activation")) {
    append_known(activation(key, value));
  } else {
    const bool window = std::find(windows.begin(), windows.end(), key) != windows.end();
    try {
      append(options, key, window ? window_node(value) : plain_node(value));
    } catch (const Json::exception&) {
      error(format("'{}' is {}, which is not as Keras writes it", key, shortened(value)));
    }
  }
}

Node LayerReader::wrapped() {
  const LayerUse inner{use_.name, &take("layer"), use_.from};
  const Translation own = translate(inner, version_, path_, reader_);
  trains_inside_ = own.trainable;
  Node list = sequence_node();
  for (const TranslatedLayer& layer : own.layers) {
    Node node = layer.options.entries.empty() ? scalar_node(layer.kind) : map_node();
    if (node.is_map()) append(node, layer.kind, layer.options);
    list.items.push_back(std::move(node));
  }
  return list;
}

void LayerReader::finish(Translation& result) {
  static const std::set<std::string> ignored{"name",           "seed",        "autocast",
                                             "implementation", "unroll",      "time_major",
                                             "use_cudnn",      "input_shape", "batch_shape",
                                             "sparse",         "ragged",      "batch_input_shape",
                                             "input_length",   "optional",    "renorm_clipping",
                                             "renorm_momentum"};  // an option of renorm, which has no counterpart
  const Json& trainable = take("trainable");
  result.trainable = trains_inside_ && (!trainable.is_boolean() || trainable.get<bool>());
  read_axes(result);
  read_dtype(result);
  for (const auto& [key, value] : config_.items()) {
    if (taken_.contains(key) || ignored.contains(key)) continue;
    if (key == "data_format") {
      if (!value.is_null() && value != "channels_last") {
        error("data_format channels_first has no counterpart in trainctl: save the network with channels_last");
      }
      continue;
    }
    const std::string name = keras_object(value).name;
    const bool usual =
        (key == "moving_mean_initializer" && name == "zeros") ||
        (key == "moving_variance_initializer" && name == "ones") || (key == "groups" && value == 1) ||
        (key == "kernel_initializer" && name == "glorot_uniform");  // written for depthwise layers of Keras 2
    const bool off = value.is_null() || value == false || value == 0;
    if (usual || off) continue;
    if (key == "activity_regularizer") {
      error(
          format("activity_regularizer: {} is not a key of layers: save the network without it (layer.{} = None), and "
                 "give the config `model.add_loss` with an expression such as 0.01 * sum(square(x), axis=-1)",
                 shortened(value), key));
    } else {
      no_counterpart(key, value);
    }
  }
}

void LayerReader::read_axes(Translation& result) {
  const Json& axis = take("axis");
  if (axis.is_array() && axis.size() > 1) return no_counterpart("axis", axis);
  if (axis.is_null() || axis.empty()) return;
  result.axes.push_back(whole_number(axis.is_array() ? axis[0] : axis));
}

// Accepts all floating-point types: the config sets the precision by `train.precision`.
void LayerReader::read_dtype(Translation& result) {
  static constexpr std::array full{"float32", "float64"};
  static constexpr std::array half{"float16", "bfloat16", "mixed_float16", "mixed_bfloat16"};
  const Json& dtype = take("dtype");
  if (dtype.is_null()) return;
  const Json no_options = Json::object();
  const Json& options = dtype.is_object() ? dtype.at("config") : no_options;
  if (const auto mode = options.find("mode"); mode != options.end()) {
    take("quantization_config");
    return error(
        format("its weights are quantized ({}), which has no counterpart in trainctl: save the network before "
               "it is quantized",
               mode->is_string() ? mode->get<std::string>() : shortened(*mode)));
  }
  const std::string name = dtype.is_object() ? options.value("name", "") : dtype.get<std::string>();
  if (std::ranges::find(half, name) != half.end()) {
    result.half_precision = name;
  } else if (std::ranges::find(full, name) == full.end()) {
    no_counterpart("dtype", dtype);
  }
}

Node LayerReader::initializer(const std::string& key, const Json& value) {
  const auto [name, config] = keras_object(value);
  std::string own = name;
  if (name == "zero" || name == "one") own += "s";
  if (name.starts_with("random_")) own = name.substr(7);
  if (name.ends_with("_initializer")) own = name.substr(0, name.rfind('_'));
  if (own == "identity_matrix" || own == "eye") own = "identity";
  if (own.empty() || initializer_choices().find(own) == nullptr) {
    no_counterpart(key, value);
    return {};
  }
  Node options = options_of(*config);
  for (Node::Entry& entry : options.entries) {
    if (entry.key == "distribution" && entry.value.text == "normal") entry.value.text = "truncated_normal";
  }
  return choice_node(initializer_choices(), own, options);
}

Node LayerReader::regularizer(const std::string& key, const Json& value) {
  const auto [name, config] = keras_object(value);
  Node node = map_node();
  for (const char* term : {"l1", "l2"}) {
    if (config->contains(term) && (*config)[term] != 0) append(node, term, plain_node((*config)[term]));
    if (value.is_string() && name.find(term) != std::string::npos) append(node, term, scalar_node("0.01"));
  }
  if (name != "l1" && name != "l2" && name != "l1l2" && name != "l1_l2") no_counterpart(key, value);
  return node;
}

Node LayerReader::activation(const std::string& key, const Json& value) {
  auto [name, config] = keras_object(value);
  if (name == "re_lu") name = "relu";
  if (name == "hard_silu") name = "hard_swish";
  if (name == "swish") name = "silu";
  Node options = map_node();
  if (name == "leaky_relu") append(options, "negative_slope", scalar_node("0.2"));
  const bool other = name == "hard_sigmoid" && (version_.starts_with("2") || version_.starts_with("1"));
  if (name.empty() || activation_choices().find(name) == nullptr || !config->empty() || other) {
    no_counterpart(key, value);
    return {};
  }
  return choice_node(activation_choices(), name, options);
}

}  // namespace trainctl
