// transformer_encoder and transformer_decoder: blocks of attention and a dense network, made of other layers, with the
// names of keras-hub's weights.
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/layers/attention/multi_head_attention.h"
#include "core/layers/dense.h"
#include "core/layers/images.h"
#include "core/layers/normalization/layer_normalization.h"
#include "core/layers/regularization/dropout.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

// The base of both layers: their options, and the parts of which they are made.
struct TransformerLayer : LayerOptions {
  std::int64_t intermediate_dim = 0;
  std::int64_t num_heads = 0;
  double dropout = 0;
  ActivationChoice activation{"relu"};
  double layer_norm_epsilon = 1e-5;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};
  bool normalize_first = false;

  MaskUse mask_use() const final { return MaskUse::own; }

 protected:
  // Whether the input is a sequence whose vectors can be divided among the heads; reports an error if it is not.
  bool fits(Layer& layer, const Feature& input) const {
    if (!is_sequence(layer, input)) return false;
    const std::int64_t width = layer.shape(input)[1];
    if (width >= num_heads) return true;
    layer.error(
        format("vectors of length {} cannot be divided among {} heads: use at most {} heads", width, num_heads, width),
        input);
    return false;
  }

  // Attention of the part `name` with x as query. `value` is the feature whose positions are seen; without one, these
  // are those of x itself. `prefix` begins the names of the normalization and the dropout.
  Feature attend(Layer& layer, const std::string& name, const std::string& prefix, const Feature& x,
                 const Feature* value, bool causal) const {
    return residual(layer, prefix, x, [&](const Feature& query) {
      MultiHeadAttentionOptions part;
      part.num_heads = num_heads;
      part.key_dim = layer.shape(x)[1] / num_heads;
      part.dropout = dropout;
      part.use_causal_mask = causal;
      part.kernel_initializer = kernel_initializer;
      part.bias_initializer = bias_initializer;
      const Feature& seen = value != nullptr ? *value : query;
      return layer.expand_part("multi_head_attention", part, name, {query, seen});
    });
  }

  // The dense network at the end of the block.
  Feature feed_forward(Layer& layer, const Feature& x) const {
    const auto dense = [&](const std::string& name, const Feature& input, std::int64_t units,
                           const ActivationChoice& function) {
      DenseOptions part;
      part.units = units;
      part.activation = function;
      part.kernel_initializer = kernel_initializer;
      part.bias_initializer = bias_initializer;
      return layer.expand_part("dense", part, name, {input});
    };
    return residual(layer, "feedforward", x, [&](const Feature& input) {
      const Feature inner = dense("feedforward_intermediate_dense", input, intermediate_dim, activation);
      return dense("feedforward_output_dense", inner, layer.shape(x)[1], ActivationChoice{"linear"});
    });
  }

 private:
  // x plus the result of `branch`, with layer normalization before the branch or after the sum.
  template <class Branch>
  Feature residual(Layer& layer, const std::string& prefix, const Feature& x, const Branch& branch) const {
    const auto normalized = [&](const Feature& input) {
      LayerNormalizationOptions part;
      part.epsilon = layer_norm_epsilon;
      return layer.expand_part("layer_normalization", part, prefix + "_layer_norm", {input});
    };
    Feature y = branch(normalize_first ? normalized(x) : x);
    if (!y.known()) return {};
    if (dropout > 0) {
      DropoutOptions part;
      part.rate = dropout;
      y = layer.expand_part("dropout", part, prefix + "_dropout", {y});
    }
    const Feature sum = layer.output(layer.op(std::make_shared<Add>(), {y.tensor, x.tensor})[0], x.mask);
    return normalize_first ? sum : normalized(sum);
  }
};

struct TransformerEncoderOptions final : TransformerLayer {
  Reference from;

  std::vector<Reference> references() const override {
    return from.name.empty() ? std::vector<Reference>{} : std::vector{from};
  }
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!fits(layer, inputs[0])) return {};
    layer.add_block(layer.path());
    const Feature x = attend(layer, "self_attention_layer", "self_attention", inputs[0], nullptr, false);
    if (!x.known()) return {};
    return layer.output(feed_forward(layer, x).tensor, inputs[0].mask);
  }
};

struct TransformerDecoderOptions final : TransformerLayer {
  OneOrMore<Reference> from;

  std::vector<Reference> references() const override { return from.items; }
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (inputs.size() > 2) {
      return layer.error(format("from names {}, but a decoder reads one sequence, or its own and that of an "
                                "encoder",
                                counted(inputs.size(), "layer")),
                         inputs[0]);
    }
    if (!fits(layer, inputs[0]) || !is_sequence(layer, inputs.back())) return {};
    layer.add_block(layer.path());
    Feature x = attend(layer, "self_attention", "self_attention", inputs[0], nullptr, true);
    if (x.known() && inputs.size() == 2) {
      x = attend(layer, "cross_attention", "cross_attention", x, &inputs[1], false);
    }
    if (!x.known()) return {};
    return layer.output(feed_forward(layer, x).tensor, inputs[0].mask);
  }
};

// Adds the keys of a TransformerLayer, which follow the keys of the layer itself.
template <class O>
Keys<O> transformer_keys(Keys<O>&& keys) {
  return std::move(keys)
      .required("intermediate_dim", &O::intermediate_dim, "Number of units of the dense network's first layer.",
                between(1, max_channels))
      .required(
          "num_heads", &O::num_heads,
          "Number of heads of the attention. Each has the features of the sequence / num_heads columns, rounded down "
          "as in keras-hub.",
          between(1, max_heads))
      .key("dropout", &O::dropout,
           "Share of attention weights, and of the values of each branch, that become zero in training.",
           from_zero_to_below(1))
      .key("activation", &O::activation, "Activation of the dense network's first layer.")
      .key("layer_norm_epsilon", &O::layer_norm_epsilon, "Added to the variance in the layer normalizations.",
           more_than(0))
      .key("kernel_initializer", &O::kernel_initializer, "Initial values of the kernels.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of the biases.")
      .key("normalize_first", &O::normalize_first,
           "Whether the normalizations are before attention and dense network, as in GPT-2, or after their residual "
           "sums, as in BERT.");
}

}  // namespace

Section transformer_encoder() {
  using O = TransformerEncoderOptions;
  return transformer_keys<O>(
      named_layer_keys<O>("transformer_encoder",
                          "A block of multi-head self-attention and a dense network with residual sums and layer "
                          "normalizations, as keras-hub's TransformerEncoder; Vaswani et al. (2017).")
          .key("from", &O::from, "The layer whose output is the sequence; absent: the previous layer."));
}

Section transformer_decoder() {
  using O = TransformerDecoderOptions;
  return transformer_keys<O>(
      named_layer_keys<O>("transformer_decoder",
                          "A block of causal multi-head self-attention, attention to an encoder's output if there is "
                          "one, and a dense network, as keras-hub's TransformerDecoder; Vaswani et al. (2017).")
          .key("from", &O::from,
               "The layer whose output is the sequence, or a list of that layer and of the one whose output is the "
               "encoder's sequence. Absent: the previous layer."));
}

}  // namespace trainctl
