// Translates the layers that the table of layers.cpp cannot express.
#include "io/keras/layer_changes.h"

#include <algorithm>
#include <string>

#include "core/base/json.h"
#include "core/layers/activations.h"
#include "io/keras/layer_reader.h"
#include "io/keras/values.h"

namespace trainctl::keras {
namespace {

// Returns a layer `activation` with this function and at most one option.
TranslatedLayer activation_layer(const std::string& name, const std::string& key = "", double value = 0) {
  TranslatedLayer layer{"activation", map_node()};
  append(layer.options, "activation", scalar_node(name));
  if (!key.empty()) append(layer.options, key, plain_node(value));
  const Section& section = *activation_choices().find(name);
  layer.options = without_defaults(section, layer.options);
  return layer;
}

}  // namespace

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
template void global_pooling<1>(LayerReader&, Translation&);
template void global_pooling<2>(LayerReader&, Translation&);
template void global_pooling<3>(LayerReader&, Translation&);

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

// The inner layer is named by its role, as in Keras' files.
void time_distributed(LayerReader& reader, Translation& result) {
  Node layers = reader.wrapped();
  if (!layers.items.empty()) {
    Node& first = layers.items[0];
    const std::string kind = first.is_map() ? first.entries[0].key : first.text;
    Node options = first.is_map() ? first.entries[0].value : map_node();
    append(options, "name", scalar_node("layer"));
    first = map_node();
    append(first, kind, std::move(options));
  }
  append(result.layers[0].options, "layers", std::move(layers));
}

}  // namespace trainctl::keras
