// Compares losses, metrics and gradients of networks with padding masks, and of the layers of transformers, with the
// values of Keras and keras-hub (test/golden/keras_masks.py, keras_attention.py, keras_conv_lstm.py), and those of the
// preset bert with PyTorch's (test/golden/bert.py).
#include "core/graph/passes/initialize.h"
#include "test/catch.h"
#include "test/core/layers/build.h"
#include "test/core/ops/golden.h"
#include "test/core/ops/keras_case.h"

namespace trainctl::test::keras_masks_test {
namespace {

constexpr const char* embedded = "{embedding: {name: e, input_dim: 6, output_dim: 5, mask_zero: true}}";
constexpr const char* wide = "{embedding: {name: e, input_dim: 6, output_dim: 6, mask_zero: true}}";

std::vector<KerasCase> cases() {
  const std::string e = embedded, w = wide, d = "{dense: {name: d, units: 3}}";
  const std::string masks = "{masking: {name: zero}}, {masking: {name: one, from: input, mask_value: 1}}, ";
  const auto ignoring = [](int number) {
    return number == 1 ? "{name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 1}"
                       : "{name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 2}";
  };
  return {
      {"gru", e + ", {gru: {name: r, units: 4, return_sequences: true}}, " + d},
      {"recurrent",
       e +
           ", {lstm: {name: l, units: 4, return_sequences: true, go_backwards: true}}, {simple_rnn: {name: r, units: "
           "4}}, " +
           d},
      {"zero_output", e + ", {lstm: {name: l, units: 4, return_sequences: true, zero_output_for_mask: true}}, " + d},
      {"attention", w +
                        ", {multi_head_attention: {name: a, num_heads: 2, key_dim: 3}}, {add: {from: [e, a]}}, "
                        "{layer_normalization: {name: n}}, " +
                        d},
      {"causal", w +
                     ", {group_query_attention: {name: a, num_query_heads: 2, num_key_value_heads: 1, head_dim: 3, "
                     "use_causal_mask: true}}, {add: {from: [e, a]}}, " +
                     d},
      {"mean", e + ", {dense: {name: t, units: 4, activation: tanh}}, global_average_pooling1d, " + d},
      {"merged",
       masks +
           "{dense: {name: a, from: zero, units: 4}}, {dense: {name: b, from: one, units: 4}}, {add: {from: [a, "
           "b]}}, {activation: tanh}, " +
           d},
      {"cross", masks +
                    "{dense: {name: v, from: zero, units: 4}}, {dense: {name: k, from: one, units: 4}}, "
                    "{multi_head_attention: {name: a, from: [input, v, k], num_heads: 2, key_dim: 3}}, " +
                    d},
      {"flattened", e + ", flatten, " + d},
      {"bidirectional", e + ", {bidirectional: {name: b, layers: [{lstm: {units: 3, return_sequences: true}}]}}, " + d},
      {"bidirectional_last", e + ", {bidirectional: {name: b, layers: [{gru: 4}], merge_mode: ave}}, " + d},
      {"bidirectional_two",
       "{bidirectional: {name: b, layers: [{simple_rnn: {units: 4, return_sequences: true, go_backwards: true}}], "
       "backward_layers: [{gru: {units: 4, return_sequences: true}}], merge_mode: mul}}, " +
           d},
      {"time_distributed",
       "masking, {time_distributed: {name: t, layers: [{dense: {name: layer, units: 4, activation: tanh}}]}}, " + d},
      {"time_distributed_conv",
       "{reshape: {target_shape: [6, 5, 1]}}, {time_distributed: {name: t, layers: [{conv1d: {name: layer, filters: 2, "
       "kernel_size: 2}}]}}, {reshape: {target_shape: [6, 8]}}, " +
           d},
      {"repeat_vector",
       "{lstm: {name: l, units: 4}}, {repeat_vector: 6}, {gru: {name: r, units: 3, return_sequences: true}}, " + d},
      {"dot_attention",
       e + ", {dense: {name: y, units: 5}}, {attention: {name: a, from: [y, e], use_scale: true}}, " + d},
      {"dot_attention_causal",
       "masking, {dense: {name: q, from: input, units: 4}}, {dense: {name: v, from: masking, units: 3}}, {dense: "
       "{name: "
       "k, from: masking, units: 4}}, {attention: {name: a, from: [q, v, k], use_causal_mask: true}}, " +
           d},
      {"ignored", e + ", " + d, ignoring(1)},
      {"ignored_alone", d, ignoring(2)},
  };
}

std::vector<KerasCase> spectrogram_cases() {
  const auto stft = [](const std::string& options, const std::string& then = "flatten, ") {
    return "{stft_spectrogram: {name: s, " + options + "}}, " + then + "{dense: {name: d, units: 3}}";
  };
  return {
      {"log", stft("frame_length: 8")},
      {"magnitude", stft("mode: magnitude, frame_length: 6, frame_step: 5, padding: same, window: hamming")},
      {"psd", stft("mode: psd, frame_length: 7, fft_length: 16, scaling: spectrum, periodic: true")},
      {"image", stft("mode: log, frame_length: 8, fft_length: 8, scaling: none, expand_dims: true",
                     "{conv2d: {name: c, filters: 2, kernel_size: 2}}, global_average_pooling2d, ")},
      {"stft", stft("mode: stft, frame_length: 8, frame_step: 3")},
      {"real", stft("mode: real, frame_length: 8, window: none")},
      {"imag", stft("mode: imag, frame_length: 8")},
      {"angle", stft("mode: angle, frame_length: 8")},
  };
}

std::vector<KerasCase> product_cases() {
  const std::string d = "{dense: {name: d, units: 3}}";
  const auto dot = [&](const std::string& options, const std::string& then = "") {
    return "{dense: {name: a, units: 4}}, {dense: {name: b, from: input, units: 4, activation: tanh}}, {dot: {from: "
           "[a, "
           "b], " +
           options + "}}, " + then + d;
  };
  return {
      {"dot", dot("axes: [2, 2]")},
      {"dot_first", dot("axes: 1", "flatten, ")},
      {"dot_normalized", dot("axes: [2, -1], normalize: true")},
      {"dot_first_normalized", dot("axes: [1, 1], normalize: true", "flatten, ")},
      {"dot_four",
       "{dense: {name: a, units: 6}}, {reshape: {name: r, target_shape: [6, 2, 3]}}, {dense: {name: b, from: input, "
       "units: 2}}, {dot: {from: [r, b], axes: 2}}, {reshape: {target_shape: [6, 18]}}, " +
           d},
      {"dot_vectors",
       "global_average_pooling1d, {dense: {name: a, units: 4}}, {dense: {name: b, from: input, units: 4}}, {dot: "
       "{from: [b, a], axes: [2, 1]}}, {reshape: {target_shape: [6, 1]}}, " +
           d},
  };
}

std::vector<KerasCase> additive_cases() {
  const std::string e = embedded, d = "{dense: {name: d, units: 3}}", y = ", {dense: {name: y, units: 5}}, ";
  return {
      {"additive", e + y + "{additive_attention: {name: a, from: [y, e]}}, " + d},
      {"additive_causal",
       "masking, {dense: {name: q, from: input, units: 4}}, {dense: {name: v, from: masking, units: 3}}, {dense: "
       "{name: k, from: masking, units: 4}}, {additive_attention: {name: a, from: [q, v, k], use_causal_mask: true, "
       "use_scale: false}}, " +
           d},
      {"concat", e + y + "{attention: {name: a, from: [y, e], use_scale: true, score_mode: concat}}, " + d},
      {"concat_plain",
       "{dense: {name: v, units: 4}}, {dense: {name: k, from: input, units: 5}}, {attention: {name: a, from: [input, "
       "v, k], score_mode: concat}}, " +
           d},
  };
}

std::vector<KerasCase> block_cases() {
  const std::string w = wide, d = "{dense: {name: d, units: 3}}";
  const auto block = [&](const std::string& options) { return w + ", {" + options + "}}, " + d; };
  return {
      {"encoder", block("transformer_encoder: {name: b, intermediate_dim: 8, num_heads: 2")},
      {"encoder_first", block("transformer_encoder: {name: b, intermediate_dim: 8, num_heads: 3, activation: gelu, "
                              "layer_norm_epsilon: 1e-3, normalize_first: true")},
      {"decoder", block("transformer_decoder: {name: b, intermediate_dim: 8, num_heads: 2, normalize_first: true")},
      {"decoder_cross",
       block("dense: {name: y, units: 4}}, {transformer_decoder: {name: b, from: [e, y], intermediate_dim: 8, "
             "num_heads: 2, activation: silu")},
  };
}

std::vector<KerasCase> conv_lstm_cases() {
  const std::string d = "{dense: {name: d, units: 3}}";
  return {
      {"rows",
       "{conv_lstm1d: {name: a, filters: 3, kernel_size: 3, padding: same, strides: 2, return_sequences: true, "
       "go_backwards: true}}, {conv_lstm1d: {name: b, filters: 2, kernel_size: 2, dilation_rate: 2, activation: elu}}, "
       "global_max_pooling1d, " +
           d},
      {"images",
       "{conv_lstm2d: {name: a, filters: 3, kernel_size: [3, 2], padding: same, return_sequences: true}}, "
       "{conv_lstm2d: {name: b, filters: 2, kernel_size: 2, strides: 2, use_bias: false, activation: gelu, "
       "recurrent_activation: hard_sigmoid}}, global_average_pooling2d, " +
           d},
      {"volumes", "{conv_lstm3d: {name: a, filters: 2, kernel_size: 2}}, global_average_pooling3d, " + d},
      {"states",
       "{conv_lstm2d: {name: a, filters: 2, kernel_size: 2, padding: same, return_sequences: true, return_state: "
       "true}}, {conv_lstm2d: {name: b, filters: 2, kernel_size: [2, 3], padding: same, go_backwards: true, "
       "initial_state: a}}, {global_average_pooling2d: {name: y}}, {global_max_pooling2d: {name: c, from: "
       "a/cell_state}}, {concatenate: {from: [y, c]}}, " +
           d},
      {"masked",
       "masking, {time_distributed: {layers: [{reshape: {target_shape: [4, 5, 2]}}]}}, {conv_lstm2d: {name: a, "
       "filters: 3, kernel_size: 2, padding: same, return_sequences: true}}, {conv_lstm2d: {name: b, filters: 2, "
       "kernel_size: [3, 2], go_backwards: true}}, global_average_pooling2d, " +
           d},
      {"masked_states",
       "masking, {time_distributed: {layers: [{reshape: {target_shape: [10, 4]}}]}}, {conv_lstm1d: {name: a, filters: "
       "2, kernel_size: 2, padding: same, return_sequences: true, return_state: true}}, {conv_lstm1d: {name: b, "
       "filters: 2, kernel_size: 3, padding: same, return_sequences: true, initial_state: a}}, flatten, " +
           d},
      {"one_step", "{conv_lstm2d: {name: a, filters: 3, kernel_size: 2}}, global_average_pooling2d, " + d},
  };
}

}  // namespace

TEST_CASE("networks with padding masks have Keras' losses, metrics and gradients") {
  const Golden golden("keras_masks.safetensors");
  for (const KerasCase& which : cases()) check_layers(golden, which);
}

TEST_CASE("products and the blocks of transformers have Keras' losses, metrics and gradients") {
  const Golden golden("keras_attention.safetensors");
  for (const auto& cases : {product_cases(), additive_cases(), block_cases()}) {
    for (const KerasCase& which : cases) check_layers(golden, which);
  }
}

TEST_CASE("convolutional LSTMs over rows, images and volumes have Keras' losses and gradients") {
  const Golden golden("keras_conv_lstm.safetensors");
  for (const KerasCase& which : conv_lstm_cases()) check_layers(golden, which);
}

TEST_CASE("networks that begin with spectrograms have Keras' losses and gradients") {
  const Golden golden("keras_spectrograms.safetensors");
  for (const KerasCase& which : spectrogram_cases()) check_layers(golden, which);
}

TEST_CASE("the kernels of spectrograms begin with Keras' values") {
  const Golden golden("keras_spectrograms.safetensors");
  for (const KerasCase& which : spectrogram_cases()) {
    const std::string name = which.name;
    const Shape sample = golden.at(name + "/in0").type.shape.without_front();
    const BuiltModel model = testing::build("layers: [" + which.model + "]", sample);
    for (const GraphParameter& parameter : model.graph.parameters) {
      const Tensor& tensor = model.graph.tensor(parameter.tensor);
      if (!tensor.name.starts_with("s/") || (name == "angle" && tensor.name == "s/imag_kernel")) continue;
      CAPTURE(name, tensor.name);
      const Value expected = golden.at(name + "/value/" + tensor.name);
      REQUIRE(tensor.type.shape == expected.type.shape);
      std::vector<float> values(expected.values.size());
      initialize(parameter, tensor, 1, values.data());
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected.values[i]).margin(2e-6));
    }
  }
}

TEST_CASE("a small BERT has PyTorch's loss and gradients") {
  const Golden golden("bert.safetensors");
  const KerasCase small{
      "bert",
      "{preset: bert, with: {classes: 3, vocabulary: 7, positions: 8, layers: 2, heads: 2, head_size: "
      "3, width: 6, mlp: 10, dropout: 0}}",
      "sparse_categorical_crossentropy"};
  check_model(golden, small);
}

}  // namespace trainctl::test::keras_masks_test
