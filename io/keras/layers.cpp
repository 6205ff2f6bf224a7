// The table of Keras' layers.
#include "io/keras/layers.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/layers/table.h"
#include "io/keras/layer_changes.h"
#include "io/keras/layer_reader.h"
#include "io/keras/operations.h"
#include "io/keras/values.h"

namespace trainctl {
namespace {

// Changes or replaces the translated layer, for translations that the table cannot express.
using Special = void (*)(LayerReader& reader, Translation& result);

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
    {"DepthwiseConv1D", "depthwise_conv1d", DEPTHWISE},
    {"DepthwiseConv2D", "depthwise_conv2d", DEPTHWISE},
    {"SeparableConv1D", "separable_conv1d", "filters pointwise_initializer pointwise_regularizer " DEPTHWISE},
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
    {"MultiHeadAttention", "multi_head_attention", "num_heads key_dim value_dim dropout" PROJECTION, keras::attention},
    {"GroupQueryAttention", "group_query_attention", "head_dim num_query_heads num_key_value_heads dropout" PROJECTION,
     keras::attention},
    {"Attention", "attention", "use_scale score_mode dropout"},
    {"AdditiveAttention", "additive_attention", "use_scale dropout"},
    {"TransformerEncoder", "transformer_encoder", TRANSFORMER},
    {"TransformerDecoder", "transformer_decoder", TRANSFORMER, keras::decoder},
    {"EinsumDense", "einsum_dense",
     "equation activation bias_axes kernel_initializer bias_initializer kernel_regularizer bias_regularizer",
     keras::einsum_dense},
    {"Dot", "dot", "axes normalize"},
    {"UnitNormalization", "unit_normalization", ""},
    {"BatchNormalization", "batch_normalization",
     "momentum epsilon center scale synchronized beta_initializer gamma_initializer"},
    {"LayerNormalization", "layer_normalization", "epsilon center scale beta_initializer gamma_initializer"},
    {"RMSNormalization", "rms_normalization", "epsilon"},
    {"GroupNormalization", "group_normalization", "groups epsilon center scale beta_initializer gamma_initializer"},
    {"SpectralNormalization", "spectral_normalization", "power_iterations", keras::spectral_normalization},
    {"TimeDistributed", "time_distributed", "", keras::time_distributed},
    {"MaxPooling1D", "max_pooling1d", "pool_size strides padding", keras::pooling},
    {"AveragePooling1D", "average_pooling1d", "pool_size strides padding", keras::pooling},
    {"MaxPooling2D", "max_pooling2d", "pool_size strides padding", keras::pooling},
    {"AveragePooling2D", "average_pooling2d", "pool_size strides padding", keras::pooling},
    {"MaxPooling3D", "max_pooling3d", "pool_size strides padding", keras::pooling},
    {"AveragePooling3D", "average_pooling3d", "pool_size strides padding", keras::pooling},
    {"GlobalMaxPooling1D", "global_max_pooling1d", "", keras::global_pooling<1>},
    {"GlobalAveragePooling1D", "global_average_pooling1d", "", keras::global_pooling<1>},
    {"GlobalMaxPooling2D", "global_max_pooling2d", "", keras::global_pooling<2>},
    {"GlobalAveragePooling2D", "global_average_pooling2d", "", keras::global_pooling<2>},
    {"GlobalMaxPooling3D", "global_max_pooling3d", "", keras::global_pooling<3>},
    {"GlobalAveragePooling3D", "global_average_pooling3d", "", keras::global_pooling<3>},
    {"UpSampling1D", "upsampling1d", "size"},
    {"Cropping1D", "cropping1d", "cropping"},
    {"ZeroPadding1D", "zero_padding1d", "padding"},
    {"UpSampling2D", "upsampling2d", "size interpolation"},
    {"Cropping2D", "cropping2d", "cropping"},
    {"ZeroPadding2D", "zero_padding2d", "padding"},
    {"UpSampling3D", "upsampling3d", "size"},
    {"Cropping3D", "cropping3d", "cropping"},
    {"ZeroPadding3D", "zero_padding3d", "padding"},
    {"Dropout", "dropout", "rate", keras::dropout},
    {"SpatialDropout1D", "spatial_dropout", "rate"},
    {"SpatialDropout2D", "spatial_dropout", "rate"},
    {"SpatialDropout3D", "spatial_dropout", "rate"},
    {"GaussianNoise", "gaussian_noise", "stddev"},
    {"GaussianDropout", "gaussian_dropout", "rate"},
    {"AlphaDropout", "alpha_dropout", "rate"},
    {"LayerScale", "layer_scale", "", keras::layer_scale},
    {"StochasticDepth", "dropout", "", keras::stochastic_depth},
    {"Activation", "activation", "activation", keras::activation},
    {"Identity", "activation", "", keras::identity},
    {"ReLU", "activation", "", keras::relu},
    {"LeakyReLU", "activation", "", keras::leaky_relu},
    {"ELU", "activation", "", keras::elu},
    {"Softmax", "activation", "", keras::softmax},
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
     "mode frame_length frame_step fft_length window periodic scaling padding expand_dims", keras::stft_spectrogram},
    {"Rescaling", "rescaling", "scale offset"},
    {"Normalization", "normalization", "mean variance", keras::normalization},
};

#undef LINEAR
#undef PROJECTION
#undef TRANSFORMER
#undef DEPTHWISE
#undef CONV_LSTM
#undef RECURRENT

// Why a class of layers has no row, and what to do about it.
std::string why_no_row(const std::string& kind, const Json& config) {
  std::string step;
  if (kind == "MelSpectrogram") step = "mel_spectrogram";
  if (kind == "Resizing" || kind == "CenterCrop") {
    step = format("{{{}: [{}, {}]}}", kind == "Resizing" ? "resize" : "center_crop",
                  json_text(config.value("height", Json())), json_text(config.value("width", Json())));
  }
  if (!step.empty()) {
    return format(
        "trainctl does this before the network: save the network without this layer, and add the step {} to "
        "the `transform` of the data",
        step);
  }
  if (kind == "RNN") {
    const Json cell = config.value("cell", Json());
    const std::string name = cell.is_object() ? cell.value("class_name", "") : "";
    return name == "StackedRNNCells"
               ? "StackedRNNCells has no counterpart in trainctl: use one recurrent layer for each cell, all except "
                 "the "
                 "last with return_sequences=True"
               : format("its cell {} has no counterpart in trainctl, which has LSTMCell, GRUCell and SimpleRNNCell",
                        name);
  }
  return "this layer has no counterpart in trainctl";
}

// Reports values that the layer of trainctl does not take, such as a negative number of units.
void check_values(const Section& section, const Node& options, LayerReader& layer) {
  for (const Node::Entry& entry : options.entries) {
    const Key* key = section.find(entry.key);
    if (key == nullptr || key->flatten) continue;
    Reader reader;
    const ReadingContext context(reader, entry.key);
    const std::shared_ptr<Options> object = section.make();
    if (key->read(entry.value, reader, dynamic_cast<void*>(object.get()))) continue;
    for (const Diagnostic& found : reader.diagnostics()) layer.error(found.message);
  }
}

}  // namespace

Translation translate(const LayerUse& use, const std::string& keras_version, const std::string& path, Reader& reader) {
  if (is_operation(*use.layer)) return translate_operation(use, path, reader);
  LayerReader layer(use, keras_version, path, reader);
  const std::string kind = layer.kind();
  const auto row = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.keras == kind; });
  Translation result;
  if (row == std::end(rows)) {
    layer.error(why_no_row(kind, use.layer->at("config")));
    return result;
  }
  const Section& section = *layer_choices().find(row->kind);
  const bool merges = section.find("from")->type.kind == TypeInfo::Kind::list;
  const bool has_states = section.find("initial_state") != nullptr;
  if (!merges && !has_states && use.from.size() != 1)
    layer.error(use.from.empty() ? "a layer without an input has no counterpart in trainctl"
                                 : format("{} inputs have no counterpart in trainctl", use.from.size()));
  result.layers.push_back({std::string(row->kind), map_node()});
  std::istringstream options{std::string(row->options)};
  for (std::string key; options >> key;) layer.copy(key, result.layers[0].options);
  if (use.use_causal_mask) append(result.layers[0].options, "use_causal_mask", scalar_node("true"));
  if (row->special != nullptr) row->special(layer, result);
  for (TranslatedLayer& own : result.layers) {
    const Section& section_of_layer = *layer_choices().find(own.kind);
    check_values(section_of_layer, own.options, layer);
    own.options = without_defaults(section_of_layer, own.options);
  }
  layer.finish(result);
  return result;
}

}  // namespace trainctl
