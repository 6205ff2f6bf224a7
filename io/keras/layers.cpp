// The table of Keras' layers, and the translation of each option.
#include "io/keras/layers.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string_view>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "core/layers/table.h"
#include "io/keras/operations.h"
#include "io/keras/values.h"

namespace trainctl {
namespace {

// The options of one layer while they are translated.
class LayerReader {
 public:
  LayerReader(const LayerUse& use, const std::string& version, const std::string& path, Reader& reader)
      : use_(use), config_(use.layer->at("config")), version_(version), path_(path), reader_(reader) {}

  std::string kind() const { return use_.layer->at("class_name").get<std::string>(); }
  void error(const std::string& message) { reader_.error({path_}, format("{} '{}': {}", kind(), use_.name, message)); }

  // Returns the option's value, null if it is absent, and marks it as translated.
  const Json& take(const std::string& key) {
    static const Json absent;
    taken_.insert(key);
    const auto found = config_.find(key);
    if (found == config_.end()) return absent;
    const bool is_numpy = found->is_object() && found->value("class_name", "") == "__numpy__";  // Keras 2.12
    return is_numpy ? found->at("config").at("value") : *found;
  }
  // Translates an option that has the same name in trainctl.
  void copy(const std::string& key, Node& options) {
    static constexpr std::array windows{"kernel_size", "strides", "dilation_rate", "pool_size",
                                        "size",        "padding", "cropping"};
    const Json& value = take(key);
    if (value.is_null()) return;
    if (key.ends_with("_initializer")) {
      append(options, key, initializer(key, value));
    } else if (key.ends_with("_regularizer")) {
      if (Node penalty = regularizer(key, value); !penalty.entries.empty()) append(options, key, std::move(penalty));
    } else if (key.ends_with("activation")) {
      append(options, key, activation(key, value));
    } else {
      const bool window = std::find(windows.begin(), windows.end(), key) != windows.end();
      append(options, key, window ? window_node(value) : plain_node(value));
    }
  }
  double number(const std::string& key, double otherwise) {
    const Json& value = take(key);
    return value.is_null() ? otherwise : value.get<double>();
  }
  void no_counterpart(const std::string& key, const Json& value) {
    error(format("{}: {} has no counterpart in trainctl", key, shown(value)));
  }

  // Translates the layer that this one wraps, as a list of one layer.
  Node wrapped() {
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

  // Checks the options that were not translated: each must have the value that trainctl always uses, else it is
  // reported.
  void finish(Translation& result) {
    static const std::set<std::string> ignored{"name",           "seed",        "autocast",
                                               "implementation", "unroll",      "time_major",
                                               "use_cudnn",      "input_shape", "batch_shape",
                                               "sparse",         "ragged",      "batch_input_shape",
                                               "input_length",   "optional",    "renorm_clipping",
                                               "renorm_momentum"};  // an option of renorm, which has no counterpart
    const Json& trainable = take("trainable");
    result.trainable = trains_inside_ && (!trainable.is_boolean() || trainable.get<bool>());
    read_axes(result);
    check_dtype();
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
      if (!usual && !off) no_counterpart(key, value);
    }
  }

 private:
  static std::string shown(const Json& value) {
    std::string text = json_text(value);
    if (text.size() > 100) text = text.substr(0, 100) + "...";
    return text;
  }

  void read_axes(Translation& result) {
    const Json& axis = take("axis");
    if (axis.is_array() && axis.size() > 1) return no_counterpart("axis", axis);
    if (axis.is_null() || axis.empty()) return;
    result.axes.push_back(whole_number(axis.is_array() ? axis[0] : axis));
  }

  // Accepts all floating-point types: the config sets the precision by `train.precision`.
  void check_dtype() {
    static constexpr std::array known{"float32", "float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"};
    const Json& dtype = take("dtype");
    if (dtype.is_null()) return;
    const std::string name = dtype.is_object() ? dtype.at("config").value("name", "") : dtype.get<std::string>();
    if (std::find(known.begin(), known.end(), name) == known.end()) no_counterpart("dtype", dtype);
  }

  Node options_of(const Json& config) {
    Node options = map_node();
    for (const auto& [key, value] : config.items()) {
      if (key != "seed" && key != "dtype" && !value.is_null()) append(options, key, plain_node(value));
    }
    return options;
  }

  Node initializer(const std::string& key, const Json& value) {
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

  Node regularizer(const std::string& key, const Json& value) {
    const auto [name, config] = keras_object(value);
    Node node = map_node();
    for (const char* term : {"l1", "l2"}) {
      if (config->contains(term) && (*config)[term] != 0) append(node, term, plain_node((*config)[term]));
      if (value.is_string() && name.find(term) != std::string::npos) append(node, term, scalar_node("0.01"));
    }
    if (name != "l1" && name != "l2" && name != "l1l2" && name != "l1_l2") no_counterpart(key, value);
    return node;
  }

  Node activation(const std::string& key, const Json& value) {
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

  const LayerUse& use_;
  const Json& config_;
  const std::string& version_;
  const std::string& path_;
  Reader& reader_;
  std::set<std::string> taken_;
  bool trains_inside_ = true;  // whether the wrapped layer trains
};

// Returns a layer `activation` with this function and at most one option.
TranslatedLayer activation_layer(const std::string& name, const std::string& key = "", double value = 0) {
  TranslatedLayer layer{"activation", map_node()};
  append(layer.options, "activation", scalar_node(name));
  if (!key.empty()) append(layer.options, key, plain_node(value));
  const Section& section = *activation_choices().find(name);
  layer.options = without_defaults(section, layer.options);
  return layer;
}

// A function that changes or replaces the translated layer, for translations that the table cannot express.
using Special = void (*)(LayerReader& reader, Translation& result);

void relu(LayerReader& reader, Translation& result) {
  const Json &limit = reader.take("max_value"), &threshold = reader.take("threshold");
  const double slope = reader.number("negative_slope", 0);
  const bool is_shifted = !threshold.is_null() && threshold != 0;
  if (is_shifted || (!limit.is_null() && (limit != 6 || slope != 0))) {
    TranslatedLayer layer{"relu", map_node()};
    if (!limit.is_null()) append(layer.options, "max_value", plain_node(limit));
    append(layer.options, "negative_slope", plain_node(slope));
    if (is_shifted) append(layer.options, "threshold", plain_node(threshold));
    result.layers = {std::move(layer)};
    return;
  }
  result.layers = {!limit.is_null() ? activation_layer("relu6")
                   : slope != 0     ? activation_layer("leaky_relu", "negative_slope", slope)
                                    : activation_layer("relu")};
}

void leaky_relu(LayerReader& reader, Translation& result) {
  const double keras2_slope = reader.number("alpha", 0.3);  // the option's name in Keras 2
  result.layers = {activation_layer("leaky_relu", "negative_slope", reader.number("negative_slope", keras2_slope))};
}

void elu(LayerReader& reader, Translation& result) {
  result.layers = {activation_layer("elu", "alpha", reader.number("alpha", 1))};
}

void softmax(LayerReader&, Translation& result) { result.layers = {activation_layer("softmax")}; }

void identity(LayerReader&, Translation& result) { result.layers = {activation_layer("linear")}; }

// Moves the options of the activation to the layer's options.
void activation(LayerReader&, Translation& result) {
  Node& options = result.layers[0].options;
  for (std::size_t i = 0; i < options.entries.size(); ++i) {
    if (!options.entries[i].value.is_map()) continue;
    const Node choice = options.entries[i].value;
    options = map_node();
    for (const Node::Entry& entry : choice.entries) {
      append(options, entry.key == "name" ? "activation" : entry.key, entry.value);
    }
  }
}

// Translates Keras' shape of the mask, which has the batch as first dimension; null means the input's size.
void dropout(LayerReader& reader, Translation& result) {
  const Json& mask = reader.take("noise_shape");
  if (mask.is_null()) return;
  if (!mask.is_array() || mask.empty() || !mask[0].is_null()) return reader.no_counterpart("noise_shape", mask);
  Node shape = sequence_node();
  for (auto size = mask.begin() + 1; size != mask.end(); ++size) {
    shape.items.push_back(scalar_node(size->is_null() ? "-1" : std::to_string(whole_number(*size))));
  }
  append(result.layers[0].options, "noise_shape", shape);
}

// Removes strides that are equal to the window, since Keras always writes them.
void pooling(LayerReader&, Translation& result) {
  Node& options = result.layers[0].options;
  const Node *size = options.find("pool_size"), *strides = options.find("strides");
  if (size == nullptr || strides == nullptr || flow_text(*size) != flow_text(*strides)) return;
  std::erase_if(options.entries, [](const Node::Entry& entry) { return entry.key == "strides"; });
}

// With `keepdims` the output keeps one position (1D) or one pixel (2D, 3D), by a reshape.
template <int positions>
void global_pooling(LayerReader& reader, Translation& result) {
  if (reader.take("keepdims") != true) return;
  TranslatedLayer reshape{"reshape", map_node()};
  Node shape = sequence_node();
  for (int i = 0; i < positions; ++i) shape.items.push_back(scalar_node("1"));
  shape.items.push_back(scalar_node("-1"));
  append(reshape.options, "target_shape", shape);
  result.layers.push_back(reshape);
}

// A single number applies to all channels. Values that `adapt` measured are not among the options: see add_statistics()
// in import.cpp.
void normalization(LayerReader&, Translation& result) {
  for (Node::Entry& entry : result.layers[0].options.entries) {
    if (!entry.value.is_scalar()) continue;
    Node list = sequence_node();
    list.items.push_back(entry.value);
    entry.value = std::move(list);
  }
}

void layer_scale(LayerReader& reader, Translation& result) {
  reader.take("projection_dim");
  append(result.layers[0].options, "init_values", plain_node(reader.take("init_values")));
}

// Translates the layer of ConvNeXt that drops the branch of a residual block as a whole.
void stochastic_depth(LayerReader& reader, Translation& result) {
  append(result.layers[0].options, "rate", plain_node(reader.take("drop_path_rate")));
  Node shape = sequence_node();
  for (int i = 0; i < 3; ++i) shape.items.push_back(scalar_node("1"));
  append(result.layers[0].options, "noise_shape", std::move(shape));
}

// Attention layers: the size of the output is a number, and the axes are those of sequences.
void attention(LayerReader& reader, Translation& result) {
  const Json &shape = reader.take("output_shape"), &axes = reader.take("attention_axes");
  if (shape.is_array() && shape.size() == 1) {
    append(result.layers[0].options, "output_shape", plain_node(shape[0]));
  } else if (!shape.is_null() && !shape.is_number()) {
    reader.no_counterpart("output_shape", shape);
  } else if (shape.is_number()) {
    append(result.layers[0].options, "output_shape", plain_node(shape));
  }
  if (!axes.is_null() && axes != Json::array({1})) reader.no_counterpart("attention_axes", axes);
  for (const char* written : {"query_shape", "key_shape", "value_shape"}) reader.take(written);
}

// In Keras a size that follows from the input is null.
void einsum_dense(LayerReader& reader, Translation& result) {
  const Json& shape = reader.take("output_shape");
  const Json& sizes = shape.is_object() ? shape.at("items") : shape;
  Node list = sequence_node();
  for (const Json& size : sizes.is_array() ? sizes : Json::array({sizes})) {
    list.items.push_back(size.is_null() ? scalar_node("none") : plain_node(size));
  }
  append(result.layers[0].options, "output_shape", std::move(list));
}

void decoder(LayerReader& reader, Translation&) {
  for (const char* built : {"decoder_sequence_shape", "encoder_sequence_shape"}) reader.take(built);
}

// In Keras no window and no scaling are null.
void stft_spectrogram(LayerReader& reader, Translation& result) {
  for (const char* key : {"window", "scaling"}) {
    const Json& value = reader.take(key);
    if (value.is_null()) append(result.layers[0].options, key, scalar_node("none"));
    if (value.is_array() || value.is_object()) reader.no_counterpart(key, value);
  }
}

void spectral_normalization(LayerReader& reader, Translation& result) {
  append(result.layers[0].options, "layers", reader.wrapped());
}

struct Row {
  std::string_view keras, kind;
  std::string_view options;  // options that have the same name in Keras and trainctl
  Special special = nullptr;
};

#define LINEAR " activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer"
#define PROJECTION " use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer"
#define TRANSFORMER                                                                                       \
  "intermediate_dim num_heads dropout activation layer_norm_epsilon kernel_initializer bias_initializer " \
  "normalize_first"
#define DEPTHWISE                                                                   \
  "kernel_size strides padding dilation_rate depth_multiplier activation use_bias " \
  "depthwise_initializer bias_initializer depthwise_regularizer bias_regularizer"
// reverse_output is not an option of Keras: network.cpp sets it for the two layers of a Bidirectional layer.
#define CONV_LSTM                                                                                  \
  "filters kernel_size strides padding dilation_rate activation recurrent_activation use_bias "    \
  "kernel_initializer recurrent_initializer bias_initializer unit_forget_bias kernel_regularizer " \
  "recurrent_regularizer bias_regularizer return_sequences go_backwards return_state dropout recurrent_dropout"
#define RECURRENT                                                                                             \
  "units activation use_bias kernel_initializer recurrent_initializer bias_initializer kernel_regularizer "   \
  "recurrent_regularizer bias_regularizer return_sequences go_backwards reverse_output zero_output_for_mask " \
  "return_state dropout recurrent_dropout "

constexpr Row rows[] = {
    {"Dense", "dense", "units" LINEAR},
    {"Conv1D", "conv1d", "filters kernel_size strides padding dilation_rate groups" LINEAR},
    {"Conv2D", "conv2d", "filters kernel_size strides padding dilation_rate groups" LINEAR},
    {"Conv3D", "conv3d", "filters kernel_size strides padding dilation_rate groups" LINEAR},
    {"Conv1DTranspose", "conv1d_transpose", "filters kernel_size strides padding dilation_rate" LINEAR},
    {"Conv2DTranspose", "conv2d_transpose", "filters kernel_size strides padding dilation_rate" LINEAR},
    {"Conv3DTranspose", "conv3d_transpose", "filters kernel_size strides padding dilation_rate" LINEAR},
    {"DepthwiseConv2D", "depthwise_conv2d", DEPTHWISE},
    {"SeparableConv2D", "separable_conv2d", "filters pointwise_initializer pointwise_regularizer " DEPTHWISE},
    {"Embedding", "embedding", "input_dim output_dim embeddings_initializer embeddings_regularizer mask_zero"},
    {"Masking", "masking", "mask_value"},
    {"RepeatVector", "repeat_vector", "n"},
    {"LSTM", "lstm", RECURRENT "recurrent_activation unit_forget_bias"},
    {"GRU", "gru", RECURRENT "recurrent_activation reset_after"},
    {"SimpleRNN", "simple_rnn", RECURRENT},
    {"ConvLSTM1D", "conv_lstm1d", CONV_LSTM},
    {"ConvLSTM2D", "conv_lstm2d", CONV_LSTM},
    {"ConvLSTM3D", "conv_lstm3d", CONV_LSTM},
    {"MultiHeadAttention", "multi_head_attention", "num_heads key_dim value_dim dropout" PROJECTION, attention},
    {"GroupQueryAttention", "group_query_attention", "head_dim num_query_heads num_key_value_heads dropout" PROJECTION,
     attention},
    {"Attention", "attention", "use_scale score_mode dropout"},
    {"AdditiveAttention", "additive_attention", "use_scale dropout"},
    {"TransformerEncoder", "transformer_encoder", TRANSFORMER},
    {"TransformerDecoder", "transformer_decoder", TRANSFORMER, decoder},
    {"EinsumDense", "einsum_dense",
     "equation activation bias_axes kernel_initializer bias_initializer kernel_regularizer bias_regularizer",
     einsum_dense},
    {"Dot", "dot", "axes normalize"},
    {"UnitNormalization", "unit_normalization", ""},
    {"BatchNormalization", "batch_normalization",
     "momentum epsilon center scale synchronized beta_initializer gamma_initializer"},
    {"LayerNormalization", "layer_normalization", "epsilon center scale beta_initializer gamma_initializer"},
    {"RMSNormalization", "rms_normalization", "epsilon"},
    {"GroupNormalization", "group_normalization", "groups epsilon center scale beta_initializer gamma_initializer"},
    {"SpectralNormalization", "spectral_normalization", "power_iterations", spectral_normalization},
    {"MaxPooling1D", "max_pooling1d", "pool_size strides padding", pooling},
    {"AveragePooling1D", "average_pooling1d", "pool_size strides padding", pooling},
    {"MaxPooling2D", "max_pooling2d", "pool_size strides padding", pooling},
    {"AveragePooling2D", "average_pooling2d", "pool_size strides padding", pooling},
    {"MaxPooling3D", "max_pooling3d", "pool_size strides padding", pooling},
    {"AveragePooling3D", "average_pooling3d", "pool_size strides padding", pooling},
    {"GlobalMaxPooling1D", "global_max_pooling1d", "", global_pooling<1>},
    {"GlobalAveragePooling1D", "global_average_pooling1d", "", global_pooling<1>},
    {"GlobalMaxPooling2D", "global_max_pooling2d", "", global_pooling<2>},
    {"GlobalAveragePooling2D", "global_average_pooling2d", "", global_pooling<2>},
    {"GlobalMaxPooling3D", "global_max_pooling3d", "", global_pooling<3>},
    {"GlobalAveragePooling3D", "global_average_pooling3d", "", global_pooling<3>},
    {"UpSampling1D", "upsampling1d", "size"},
    {"Cropping1D", "cropping1d", "cropping"},
    {"ZeroPadding1D", "zero_padding1d", "padding"},
    {"UpSampling2D", "upsampling2d", "size interpolation"},
    {"Cropping2D", "cropping2d", "cropping"},
    {"ZeroPadding2D", "zero_padding2d", "padding"},
    {"UpSampling3D", "upsampling3d", "size"},
    {"Cropping3D", "cropping3d", "cropping"},
    {"ZeroPadding3D", "zero_padding3d", "padding"},
    {"Dropout", "dropout", "rate", dropout},
    {"SpatialDropout1D", "spatial_dropout", "rate"},
    {"SpatialDropout2D", "spatial_dropout", "rate"},
    {"SpatialDropout3D", "spatial_dropout", "rate"},
    {"GaussianNoise", "gaussian_noise", "stddev"},
    {"GaussianDropout", "gaussian_dropout", "rate"},
    {"AlphaDropout", "alpha_dropout", "rate"},
    {"LayerScale", "layer_scale", "", layer_scale},
    {"StochasticDepth", "dropout", "", stochastic_depth},
    {"Activation", "activation", "activation", activation},
    {"Identity", "activation", "", identity},
    {"ReLU", "activation", "", relu},
    {"LeakyReLU", "activation", "", leaky_relu},
    {"ELU", "activation", "", elu},
    {"Softmax", "activation", "", softmax},
    {"PReLU", "prelu", "alpha_initializer shared_axes"},
    {"Flatten", "flatten", ""},
    {"Reshape", "reshape", "target_shape"},
    {"Permute", "permute", "dims"},
    {"Add", "add", ""},
    {"Subtract", "subtract", ""},
    {"Multiply", "multiply", ""},
    {"Average", "average", ""},
    {"Maximum", "maximum", ""},
    {"Minimum", "minimum", ""},
    {"Concatenate", "concatenate", ""},
    {"STFTSpectrogram", "stft_spectrogram",
     "mode frame_length frame_step fft_length window periodic scaling padding expand_dims", stft_spectrogram},
    {"Rescaling", "rescaling", "scale offset"},
    {"Normalization", "normalization", "mean variance", normalization},
};

#undef LINEAR
#undef PROJECTION
#undef TRANSFORMER
#undef DEPTHWISE
#undef CONV_LSTM
#undef RECURRENT

}  // namespace

Translation translate(const LayerUse& use, const std::string& keras_version, const std::string& path, Reader& reader) {
  if (is_operation(*use.layer)) return translate_operation(use, path, reader);
  LayerReader layer(use, keras_version, path, reader);
  const std::string kind = layer.kind();
  const auto row = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.keras == kind; });
  Translation result;
  if (row == std::end(rows)) {
    layer.error(kind == "MelSpectrogram"
                    ? "trainctl computes mel spectrograms before the network: save the network without this layer, and "
                      "add the step mel_spectrogram to the `transform` of the data"
                    : "this layer has no counterpart in trainctl");
    return result;
  }
  const Section& section = *layer_choices().find(row->kind);
  const bool merges = section.find("from")->type.kind == TypeInfo::Kind::list;
  const bool has_states = section.find("initial_state") != nullptr;
  if (!merges && !has_states && use.from.size() != 1)
    layer.error(format("{} inputs have no counterpart in trainctl", use.from.size()));
  result.layers.push_back({std::string(row->kind), map_node()});
  std::istringstream options{std::string(row->options)};
  for (std::string key; options >> key;) layer.copy(key, result.layers[0].options);
  if (use.use_causal_mask) append(result.layers[0].options, "use_causal_mask", scalar_node("true"));
  if (row->special != nullptr) row->special(layer, result);
  for (TranslatedLayer& own : result.layers) {
    own.options = without_defaults(*layer_choices().find(own.kind), own.options);
  }
  layer.finish(result);
  return result;
}

}  // namespace trainctl
