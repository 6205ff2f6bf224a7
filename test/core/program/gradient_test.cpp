// Compares a whole program's gradients, fused ops included, with finite differences of its loss.
#include <algorithm>
#include <random>

#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::gradient_test {
namespace {

// The kind of samples: each sample, or each position of a sample, has one of 3 classes; a mask may weight positions.
struct Samples {
  Shape shape{8, 8, 2};
  Shape positions;
  bool masked = false;
  std::int32_t tokens = 0;  // if above 0: values are whole numbers below this
};

// Compares the gradients of a network with one loss.
void check_gradients(const std::string& network, float step, const Samples& kind = {}, int micro_batches = 1) {
  TestJob job(network, "sgd");
  job.spec.inputs[0].sample = kind.shape;
  job.spec.outputs[0].target.classes = 3;
  job.spec.outputs[0].target.shape = kind.positions;
  if (kind.masked) job.spec.weight = kind.positions;
  const std::int64_t samples = 6, width = kind.shape.count(), rows = samples * kind.positions.count();
  std::mt19937 random(21);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(static_cast<std::size_t>(samples * width));
  std::generate(inputs.begin(), inputs.end(), [&] { return normal(random); });
  std::vector<std::int32_t> tokens(inputs.size());
  if (kind.tokens > 0) {
    job.spec.inputs[0].format.dtype = DType::int32;
    for (std::int32_t& token : tokens)
      token = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(kind.tokens));
  }
  std::vector<std::int32_t> targets{0, 2, 1, 1, 0, 2};
  while (std::ssize(targets) < rows) targets.push_back(static_cast<std::int32_t>(random() % 3));
  std::vector<float> weights(static_cast<std::size_t>(kind.masked ? rows : samples), 1.0f);
  for (std::size_t i = 0; kind.masked && i < weights.size(); i += 3) weights[i] = 0;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(samples), 3);
  Batch batch = batch_of(inputs, targets, weights, numbers);
  if (kind.tokens > 0) batch.inputs = {view_of(tokens)};

  CAPTURE(network);
  check_slopes(job.training(samples, micro_batches), batch, step);
}

}  // namespace

TEST_CASE("gradients of dense networks are the slopes of the loss") {
  for (const char* word : {"tanh", "relu", "gelu", "leaky_relu"}) {
    const std::string function = word;
    check_gradients("layers: [flatten, {dense: {units: 9, activation: " + function +
                        "}}, {dense: {units: 7, activation: " + function +
                        "}}, {dense: {units: 3, activation: softmax}}]",
                    4e-3f);
  }
}

TEST_CASE("gradients of a loss at each position are the slopes of its mean") {
  const char* network = "layers: [{dense: {units: 9, activation: tanh}}, {dense: {units: 3, activation: softmax}}]";
  for (const bool masked : {false, true}) check_gradients(network, 4e-3f, {{7, 5}, {7}, masked});
  const char* images = R"(
layers:
  - conv2d: {filters: 4, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization
  - activation: tanh
  - dense: {units: 3, activation: softmax}
)";
  check_gradients(images, 4e-3f, {{6, 5, 2}, {6, 5}, false});
}

TEST_CASE("gradients of additive attention, products and decoders with dropout are the slopes of the loss") {
  const std::string start = R"(
layers:
  - dense: {name: a, units: 6}
  - dense: {name: b, from: input, units: 6, activation: tanh}
)";
  const std::string end = "  - dense: {units: 3, activation: softmax}\n";
  for (const char* layer :
       {"additive_attention: {from: [a, b], dropout: 0.5}",
        "transformer_decoder: {from: [a, b], intermediate_dim: 5, num_heads: 2, activation: tanh, dropout: 0.25}",
        "dot: {from: [a, b], axes: 2, normalize: true}"}) {
    check_gradients(start + "  - " + layer + "\n" + end, 4e-3f, {{7, 5}, {7}, false});
  }
}

TEST_CASE("gradients of an embedding are the slopes of the loss") {
  const char* network =
      "layers: [{embedding: {input_dim: 5, output_dim: 4}}, {dense: {units: 7, activation: tanh}}, "
      "{dense: {units: 3, activation: softmax}}]";
  check_gradients(network, 4e-3f, {{6}, {6}, false, 5});
  check_gradients(network, 4e-3f, {{3, 2}, {3, 2}, true, 5});
}

TEST_CASE("gradients of a residual network are the slopes of the loss") {
  const char* network = R"(
layers:
  - conv2d: {filters: 4, kernel_size: 3, padding: same, activation: tanh}
  - residual:
      layers:
        - conv2d: {filters: 6, kernel_size: 3, strides: 2, padding: same, use_bias: false}
        - batch_normalization
        - activation: relu
        - conv2d: {filters: 6, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization
      shortcut:
        - conv2d: {filters: 6, kernel_size: 1, strides: 2, use_bias: false}
        - batch_normalization
      activation: relu
  - residual:
      layers:
        - conv2d: {filters: 6, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization
      activation: relu
  - max_pooling2d: {pool_size: 2}
  - flatten
  - dense: {units: 3, activation: softmax}
)";
  check_gradients(network, 3e-4f);
}

TEST_CASE("gradients of the layers of language models are the slopes of the loss") {
  // The table is used for tokens, transposed for other values, and transposed for the logits.
  const char* tied = R"(
layers:
  - reversible_embedding: {name: tokens, input_dim: 3, output_dim: 8, logit_soft_cap: 4}
  - position_embedding: {name: positions, sequence_length: 9, initializer: random_normal}
  - add: {name: x, from: ["tokens@1", positions]}
  - rms_normalization
  - dense: {name: gate, units: 8}
  - dense: {name: up, from: rms_normalization, units: 8}
  - gated_linear_unit: {name: product, from: [gate, up], activation: silu}
  - rotary_embedding: {num_heads: 2}
  - add: {name: y, from: [x, rotary_embedding]}
  - rms_normalization
  - reversible_embedding: {name: tokens, reverse: true}
)";
  for (const int micro_batches : {1, 3}) check_gradients(tied, 4e-3f, {{6}, {6}, false, 3}, micro_batches);
  const char* own = R"(
layers:
  - token_and_position_embedding: {vocabulary_size: 5, sequence_length: 6, embedding_dim: 4}
  - gated_linear_unit: {from: [token_and_position_embedding, token_and_position_embedding], activation: gelu}
  - dense: {units: 3, activation: softmax}
)";
  check_gradients(own, 4e-3f, {{6}, {6}, true, 5});
}

TEST_CASE("gradients of the layers of vision transformers are the slopes of the loss") {
  const char* network = R"(
layers:
  - conv2d: {name: patch_embedding, filters: 6, kernel_size: 4, strides: 4}
  - layer_scale: 0.7
  - reshape: {name: patches, target_shape: [-1, 6]}
  - class_token: {name: token, initializer: random_normal}
  - position_embedding: {name: positions, sequence_length: auto, initializer: random_normal}
  - add: {name: x, from: [token, positions]}
  - residual:
      layers:
        - layer_normalization
        - multi_head_attention: {num_heads: 2, key_dim: 3}
        - layer_scale: {name: scaled, init_values: 0.5}
  - take_position: {name: first}
  - take_position: {name: last, from: residual, index: -1}
  - layer_scale: {name: scaled_vector, init_values: 1.5}
  - concatenate: {from: [first, scaled_vector]}
  - dense: {units: 3, activation: softmax}
)";
  for (const int micro_batches : {1, 3}) check_gradients(network, 4e-3f, {}, micro_batches);
}

TEST_CASE("gradients of layers with random values inside time_distributed are the slopes of the loss") {
  check_gradients(R"(
layers:
  - reshape: [8, 16]
  - time_distributed:
      layers: [{dense: {units: 5, activation: tanh}}, {dropout: 0.3}, {gaussian_noise: 0.1}, {gaussian_dropout: 0.2}]
  - flatten
  - dense: {units: 3, activation: softmax}
)",
                  4e-3f);
}

TEST_CASE("gradients of weights that several layers share are the slopes of the loss") {
  check_gradients(R"(
layers:
  - conv2d: {name: c, filters: 2, kernel_size: 3, padding: same, activation: tanh}
  - batch_normalization: {name: n}
  - conv2d: {name: c, filters: 2, kernel_size: 3, padding: same, activation: tanh}
  - batch_normalization: {name: n}
  - residual:
      layers: [{conv2d: {filters: 2, kernel_size: 3, padding: same, use_bias: false}}]
      name: block
  - residual:
      layers: [{conv2d: {filters: 2, kernel_size: 3, padding: same, use_bias: false}}]
      name: block
  - flatten
  - dense: {units: 5}
  - layer_normalization: {name: l}
  - dense: {name: d, units: 5, activation: gelu}
  - layer_normalization: {name: l}
  - dense: {name: d, units: 5, activation: gelu}
  - dense: {units: 3, activation: softmax}
)",
                  1e-3f);
  // The two halves of a siamese network for tokens.
  for (const int micro_batches : {1, 3}) {
    check_gradients(R"(
layers:
  - embedding: {name: words, from: input, input_dim: 5, output_dim: 4}
  - dense: {name: half, units: 4, activation: tanh}
  - embedding: {name: words, from: input, input_dim: 5, output_dim: 4}
  - dense: {name: half, units: 4, activation: tanh}
  - concatenate: {from: [half@1, half]}
  - dense: {units: 3, activation: softmax}
)",
                    4e-3f, {{6}, {6}, true, 5}, micro_batches);
  }
}

}  // namespace trainctl::gradient_test
