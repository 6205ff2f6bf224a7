// Networks with every kind of layer that ranks can split, with random samples.
#pragma once

#include <bit>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/graph/mesh.h"
#include "test/core/program/job.h"

namespace trainctl::networks {

inline constexpr std::int64_t batch = 12;

inline constexpr const char* mlp = R"(layers:
  - flatten
  - dense: {name: first, units: 48, activation: relu}
  - dropout: {name: drop, rate: 0.3}
  - dense: {name: second, units: 36, activation: tanh}
  - dense: {name: third, units: 40, activation: gelu}
  - layer_normalization
  - lambda: {name: scaled, expression: x * factor, weights: {factor: {shape: [], initializer: ones}}}
  - dense: {name: last, units: 3, activation: softmax}
)";
// A skip connection around a pair of convolutions, and a concatenation of two layers.
inline constexpr const char* cnn = R"(layers:
  - conv2d: {name: c1, filters: 16, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1, momentum: 0.9}
  - activation: relu
  - residual:
      name: block
      layers:
        - conv2d: {name: a, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization: {momentum: 0.9}
        - activation: relu
        - dropout: 0.2
        - conv2d: {name: b, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization: {momentum: 0.9}
      activation: relu
  - max_pooling2d: {name: pooled, pool_size: 2}
  - conv2d: {name: wide, filters: 24, kernel_size: 3, padding: same, activation: silu}
  - concatenate: {from: [pooled, wide]}
  - average_pooling2d: {pool_size: 2}
  - conv2d: {name: tall, filters: 32, kernel_size: 2, padding: valid, activation: relu}
  - flatten
  - dense: {units: 3, activation: softmax}
)";
inline constexpr const char* two_inputs = R"(inputs: [a, b]
layers:
  - dense: {name: left, from: a, units: 48, activation: relu}
  - dense: {name: right, from: b, units: 48, activation: tanh}
  - add: {name: both, from: [left, right]}
  - dense: {name: hidden, units: 32, activation: relu}
  - dense: {units: 3, activation: softmax}
)";
inline constexpr const char* sequence = R"(layers:
  - embedding: {input_dim: 11, output_dim: 16}
  - dense: {name: wide, units: 64, activation: relu}
  - dense: {units: 11, activation: softmax}
)";

// Two blocks of a transformer, with dropout of attention weights, and heads that share keys and values in the second.
inline constexpr const char* transformer = R"(layers:
  - embedding: {input_dim: 11, output_dim: 16}
  - residual:
      name: first
      layers:
        - layer_normalization
        - multi_head_attention: {name: attention, num_heads: 4, key_dim: 4, use_causal_mask: true, dropout: 0.2}
  - residual:
      name: first_mlp
      layers:
        - layer_normalization
        - dense: {name: up, units: 64, activation: gelu}
        - dense: {name: down, units: 16}
  - residual:
      name: second
      layers:
        - layer_normalization
        - group_query_attention: {name: attention, num_query_heads: 8, num_key_value_heads: 4, head_dim: 4}
  - dense: {units: 11, activation: softmax}
)";
// An encoder and a decoder with padding masks and dropout, additive attention, and products whose sums the ranks split.
inline constexpr const char* encoder_decoder = R"(layers:
  - embedding: {name: tokens, input_dim: 11, output_dim: 16, mask_zero: true}
  - transformer_encoder: {name: encoder, intermediate_dim: 32, num_heads: 4, dropout: 0.1}
  - dense: {name: other, from: tokens, units: 16, activation: tanh}
  - transformer_decoder: {name: decoder, from: [other, encoder], intermediate_dim: 32, num_heads: 4, normalize_first: true}
  - additive_attention: {name: aligned, from: [decoder, encoder]}
  - dense: {name: left, units: 32}
  - dense: {name: right, from: decoder, units: 32}
  - dot: {name: scores, from: [left, right], axes: 2}
  - concatenate: {from: [scores, aligned]}
  - dense: {units: 11, activation: softmax}
)";
// A language model without attention: a table that is used twice, positions, heads with rotary positions, and gates.
inline constexpr const char* language = R"(layers:
  - reversible_embedding: {name: tokens, input_dim: 11, output_dim: 16}
  - position_embedding: {name: positions, sequence_length: 8}
  - add: {name: x, from: ["tokens@1", positions]}
  - rms_normalization
  - dense: {name: query, units: 32}
  - rotary_embedding: {num_heads: 8}
  - dense: {name: out, units: 16}
  - add: {name: y, from: [x, out]}
  - rms_normalization: {name: second}
  - dense: {name: gate, units: 48}
  - dense: {name: up, from: second, units: 48}
  - gated_linear_unit: {from: [gate, up], activation: silu}
  - dense: {name: down, units: 16}
  - add: {name: z, from: [y, down]}
  - reversible_embedding: {name: tokens, reverse: true}
)";

// The product of two activations that the ranks split by heads. The heads are a dimension of their own, which a permute
// layer moves before the dimension of the positions.
inline constexpr const char* heads = R"(layers:
  - reshape: {name: positions, target_shape: [8, 16]}
  - dense: {name: query, units: 32}
  - dense: {name: key, from: positions, units: 32, activation: tanh}
  - reshape: {name: query_heads, from: query, target_shape: [8, 8, 4]}
  - reshape: {name: key_heads, from: key, target_shape: [8, 8, 4]}
  - permute: {name: query_first, from: query_heads, dims: [2, 1, 3]}
  - permute: {name: key_first, from: key_heads, dims: [2, 1, 3]}
  - multiply: {name: product, from: [query_first, key_first]}
  - permute: [2, 1, 3]
  - reshape: [8, 32]
  - dense: {name: out, units: 12, activation: relu}
  - flatten
  - dense: {units: 3, activation: softmax}
)";
// A transposed convolution whose output is split, and one whose input is split.
inline constexpr const char* transposed = R"(layers:
  - conv2d: {name: c, filters: 8, kernel_size: 3, padding: same, activation: relu}
  - conv2d_transpose: {name: up, filters: 16, kernel_size: 3, strides: 2, padding: same, activation: tanh}
  - conv2d_transpose: {name: on, filters: 6, kernel_size: 2, padding: same}
  - flatten
  - dense: {units: 3, activation: softmax}
)";
// A product as in `heads`, followed by a layer that needs all heads: the ranks gather the heads, which are the third
// dimension from the end.
inline constexpr const char* gathered_heads = R"(layers:
  - reshape: {name: positions, target_shape: [2, 64]}
  - dense: {name: query, units: 96, activation: tanh}
  - reshape: {name: query_heads, target_shape: [2, 8, 12]}
  - permute: {name: first, dims: [2, 1, 3]}
  - multiply: {name: product, from: [first, first]}
  - layer_normalization
  - flatten
  - dense: {units: 3, activation: softmax}
)";

// The classes of the last layer are split, and the loss is computed on shards.
inline constexpr const char* classes = R"(layers:
  - flatten
  - dense: {name: hidden, units: 127, activation: tanh}
  - dense: {name: last, units: 80, activation: softmax}
)";

// Frozen layers in front of all trainable layers and between them.
inline constexpr const char* frozen = R"(freeze: [low, block]
layers:
  - conv2d: {name: low, filters: 16, kernel_size: 3, padding: same, activation: relu}
  - conv2d: {name: c1, filters: 16, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: n1, momentum: 0.9}
  - activation: relu
  - residual:
      name: block
      layers:
        - conv2d: {name: a, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization
        - activation: relu
        - conv2d: {name: b, filters: 16, kernel_size: 3, padding: same}
        - batch_normalization
      activation: relu
  - flatten
  - dense: {name: hidden, units: 32, activation: relu}
  - dense: {units: 3, activation: softmax}
)";

// Frozen layers that are split, between trainable layers that are not.
inline constexpr const char* frozen_pairs = R"(freeze: [columns, rows, wide, narrow]
layers:
  - flatten
  - dense: {name: whole, units: 31, activation: tanh}
  - dense: {name: columns, units: 64, activation: relu}
  - dense: {name: rows, units: 31, activation: tanh}
  - dense: {name: wide, units: 64, activation: relu}
  - dense: {name: narrow, units: 9, activation: tanh}
  - dense: {units: 3, activation: softmax}
)";

// A bias with two dimensions behind a split layer.
inline constexpr const char* einsum = R"(layers:
  - flatten
  - dense: {name: wide, units: 64, activation: relu}
  - einsum_dense: {name: heads, equation: "ab,bcd->acd", output_shape: [3, 5], bias_axes: cd}
  - flatten
  - dense: {name: hidden, units: 48, activation: tanh}
  - dense: {units: 3, activation: softmax}
)";

// Losses of a layer in the middle and of the input, which stages of a pipeline before the last one compute.
inline constexpr const char* added_losses = R"(layers:
  - flatten
  - dense: {name: first, units: 48, activation: tanh}
  - dense: {name: mean, units: 36}
  - dense: {name: spread, from: first, units: 36, activation: tanh}
  - lambda: {name: code, from: [mean, spread], inputs: [m, v], expression: m * exp(0.5 * v)}
  - dense: {name: hidden, units: 40, activation: relu}
  - dense: {name: last, units: 3, activation: softmax}
add_loss:
  kl: {from: [mean, spread], inputs: [m, v], expression: '-0.5 * sum(1 + v - square(m) - exp(v), axis=-1)', weight: 0.1}
  activity: {from: first, expression: 0.3 * mean(square(x))}
  near: {from: hidden, expression: 'mean(square(x[:, :3] - y_true), axis=-1)'}
  both: {from: [first, hidden, flatten], inputs: [a, b, c], expression: 'mean(a, axis=-1) * mean(b * b, axis=-1) + mean(c * c, axis=-1) * mean(b, axis=-1)'}
)";

// A network to train, and random samples with the shapes of its inputs.
struct Network {
  TestJob job;
  std::vector<std::vector<float>> inputs;  // values of all samples; tokens: the bits of an int32
  std::vector<std::int32_t> targets;
  std::vector<float> weights;
  std::vector<std::int64_t> numbers;
  std::int64_t targets_each = 1;

  // `vocabulary`: number of different tokens.
  Network(const std::string& text, std::vector<ModelInput> model_inputs, const std::string& optimizer,
          const std::string& loss = "sparse_categorical_crossentropy", std::uint32_t vocabulary = 11)
      : job(text, optimizer, loss) {
    job.spec.inputs = std::move(model_inputs);
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    const ModelInput& first = job.spec.inputs[0];
    const bool tokens = first.format.dtype == DType::int32;
    if (tokens) targets_each = first.sample.count();
    for (const ModelInput& input : job.spec.inputs) {
      std::vector<float>& values = inputs.emplace_back();
      for (std::int64_t i = 0; i < batch * input.sample.count(); ++i) {
        values.push_back(tokens ? std::bit_cast<float>(static_cast<std::int32_t>(random() % vocabulary))
                                : normal(random));
      }
    }
    for (std::int64_t i = 0; i < batch * targets_each; ++i) {
      targets.push_back(static_cast<std::int32_t>(random() % (tokens ? vocabulary : 3)));
    }
    for (std::int64_t i = 0; i < batch; ++i) {
      weights.push_back(i == 5 ? 0.0f : 1.0f);  // a skipped sample
      numbers.push_back(100 + i);
    }
  }
  Batch share(const MeshRank& rank) {
    const Share share = share_of(batch, rank);
    Batch part;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ModelInput& input = job.spec.inputs[i];
      const std::int64_t each = input.sample.count();
      part.inputs.push_back(
          View{inputs[i].data(), input.format.dtype, batch * each}.slice(share.first * each, share.count * each));
    }
    part.targets = {View{targets.data(), DType::int32, batch * targets_each}.slice(share.first * targets_each,
                                                                                   share.count * targets_each)};
    part.weights = View{weights.data(), DType::float32, batch}.slice(share.first, share.count);
    part.samples = View{numbers.data(), DType::int64, batch}.slice(share.first, share.count);
    part.count = share.count;
    return part;
  }
};

inline ModelInput input_of(const std::string& name, Shape sample, DType dtype = DType::float32) {
  ModelInput input;
  input.name = name;
  input.sample = std::move(sample);
  input.format.dtype = dtype;
  return input;
}

struct Case {
  const char* name;
  std::function<Network()> make;
  double learning_rate;
};
inline const Case cases[] = {
    {"mlp",
     [] {
       return Network(mlp, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9, weight_decay: 1e-2}");
     },
     0.05},
    {"cnn",
     [] {
       return Network(cnn, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9, nesterov: true}");
     },
     0.02},
    {"two inputs",
     [] {
       return Network(two_inputs, {input_of("a", {40}), input_of("b", {30})}, "{name: adam, epsilon: 1e-3}");
     },
     0.003},
    {"sequence", [] { return Network(sequence, {input_of("", {6}, DType::int32)}, "{name: rmsprop, epsilon: 1e-2}"); },
     0.01},
    {"encoder and decoder",
     [] { return Network(encoder_decoder, {input_of("", {6}, DType::int32)}, "{name: adam, epsilon: 1e-3}"); }, 0.003},
    {"transformer",
     [] { return Network(transformer, {input_of("", {6}, DType::int32)}, "{name: adam, epsilon: 1e-3}"); }, 0.003},
    {"language", [] { return Network(language, {input_of("", {6}, DType::int32)}, "{name: adam, epsilon: 1e-2}"); },
     0.01},
    {"classes",
     [] {
       return Network(classes, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.005},
    {"heads",
     [] {
       return Network(heads, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.02},
    {"transposed",
     [] {
       return Network(transposed, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.01},
    {"added losses",
     [] {
       return Network(added_losses, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.02},
    {"gathered heads",
     [] {
       return Network(gathered_heads, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.02},
    {"frozen",
     [] {
       return Network(frozen, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9, weight_decay: 1e-2}");
     },
     0.01},  // a larger rate leads to losses so small that one input at the kink of a ReLU changes them by 1e-4
    {"frozen pairs",
     [] {
       return Network(frozen_pairs, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.03},
    {"einsum",
     [] {
       return Network(einsum, {input_of("", {8, 8, 2})}, "{name: sgd, momentum: 0.9}");
     },
     0.02},
};

}  // namespace trainctl::networks
