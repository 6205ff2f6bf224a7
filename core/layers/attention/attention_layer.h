// The base of multi_head_attention and group_query_attention: projections of queries, keys and values, attention, and
// the projection of its result.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/regularizers.h"
#include "core/layers/rotary_embedding.h"
#include "core/spec/one_or_more.h"

namespace trainctl {

inline constexpr double max_heads = 65'535;  // of CUDA's grids

// The numbers and sizes of heads.
struct HeadSizes {
  std::int64_t heads, key_heads;       // of queries; of keys and values
  std::int64_t head_size, value_size;  // columns of a head of queries and keys; of values
};

// The rotation of queries and keys.
struct HeadRotation : RotaryOptions {
  static Keys<HeadRotation> keys();
};

struct AttentionLayer : LayerOptions {
  OneOrMore<Reference> from;
  std::optional<Reference> documents;
  double dropout = 0;
  bool use_bias = true;
  bool use_causal_mask = false;
  std::int64_t sliding_window = 0;
  std::optional<HeadRotation> rotary_embedding;
  std::optional<double> query_key_norm;
  Auto<std::int64_t> output_shape;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};
  RegularizerChoice kernel_regularizer, bias_regularizer;

  std::vector<Reference> references() const final;
  MaskUse mask_use() const override { return MaskUse::own; }
  bool reads_numbers(std::size_t input) const override { return reads_documents() && input + 1 == references().size(); }

 protected:
  bool reads_documents() const { return documents.has_value(); }
  Feature attend(Layer& layer, const std::vector<Feature>& inputs, const HeadSizes& sizes) const;

 private:
  // Returns the query, the value and the key among the inputs, or unknown features after reporting an error.
  std::array<Feature, 3> operands(Layer& layer, const std::vector<Feature>& inputs) const;
  // The mask of the keys that queries see: those that neither the mask of the value nor that of the key hides.
  static TensorId key_mask(Layer& layer, const Feature& value, const Feature& key);
  // Returns queries or keys [N, T, heads * size] with each head normalized and rotated, if the options say so;
  // no_tensor after reporting an error.
  TensorId prepare(Layer& layer, const std::string& name, TensorId x, std::int64_t heads, std::int64_t size,
                   TensorId numbers) const;
  // Returns x [N, T, in] times the kernel `name`/kernel (in, columns), plus a bias. `shape` is the shape of Keras'
  // kernel, from which the initial values follow.
  TensorId project(Layer& layer, const std::string& name, TensorId x, std::int64_t columns, const Shape& shape) const;
};

// Adds the keys of an AttentionLayer, which follow the keys of the layer itself.
template <class O>
Keys<O> attention_keys(Keys<O>&& keys) {
  return std::move(keys)
      .key("from", &O::from,
           "The layer whose output is query, key and value (self-attention); or a list of the layers of query and "
           "value, or of query, value and key. Absent: the previous layer.")
      .key("dropout", &O::dropout, "Share of attention weights that become zero in training.", from_zero_to_below(1))
      .key("use_bias", &O::use_bias, "Whether biases are added.")
      .key("use_causal_mask", &O::use_causal_mask, "Whether a position attends to itself and earlier positions only.")
      .key("sliding_window", &O::sliding_window,
           "If not 0, a position attends only to positions that are less than this number of positions away.",
           at_least(0))
      .key("documents", &O::documents,
           "An input of the model with a whole number for each position (documents of a text that are packed into one "
           "sample): a position attends only to positions of the same number; none: all positions are one document.")
      .key("rotary_embedding", &O::rotary_embedding,
           "Rotates queries and keys by their positions, as the layer rotary_embedding does. With documents, positions "
           "count from the beginning of each document.")
      .key(
          "query_key_norm", &O::query_key_norm,
          "Divides each head of queries and keys by the root of the mean of its squares plus this number (RMS "
          "normalization), and multiplies it by query_norm/scale or key_norm/scale, before the rotation; as in Qwen 3.",
          more_than(0))
      .key("output_shape", &O::output_shape, "Number of outputs; auto: that of the query.", between(1, max_channels))
      .key("kernel_initializer", &O::kernel_initializer, "Initial values of the kernels.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of the biases.")
      .key("kernel_regularizer", &O::kernel_regularizer, "A penalty on the kernels.")
      .key("bias_regularizer", &O::bias_regularizer, "A penalty on the biases.");
}

}  // namespace trainctl
