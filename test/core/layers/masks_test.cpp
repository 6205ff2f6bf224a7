// Tests which layers keep padding masks, and the errors of masks and of layers around layers.
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::masks_test {
namespace {

BuiltModel of_tokens(const std::string& layers, Reader& reader) {
  BuildOptions options;
  options.batch = 2;
  options.inputs[0] = {"", {6}, {DType::int32, {}, {}}};
  return build("layers: [{embedding: {name: e, input_dim: 9, output_dim: 4, mask_zero: true}}, " + layers + "]",
               options, reader);
}

// Whether the output of these layers after an embedding with a mask has a mask.
bool keeps(const std::string& layers) {
  Reader reader;
  const BuiltModel model = of_tokens(layers, reader);
  reader.throw_if_failed();
  return !model.graph.masks.empty();
}

std::string messages(const std::string& layers) {
  Reader reader;
  of_tokens(layers, reader);
  std::string text;
  for (const Diagnostic& diagnostic : reader.diagnostics()) text += diagnostic.message + "\n";
  return text;
}

}  // namespace

// The expected values are those of Keras 3.15. There, however, rms_normalization ends the mask.
TEST_CASE("layers keep or end padding masks as in Keras") {
  for (const char* layers : {"dense: 3",
                             "layer_normalization: {}",
                             "rms_normalization: {}",
                             "group_normalization: {groups: 2}",
                             "batch_normalization: {}",
                             "activation: relu",
                             "prelu: {}",
                             "relu: {max_value: 4}",
                             "leaky_relu: {}",
                             "elu: {}",
                             "softmax: {axis: 1}",
                             "unit_normalization: {}",
                             "dropout: 0.1",
                             "spatial_dropout: 0.1",
                             "gaussian_noise: 0.1",
                             "gaussian_dropout: 0.1",
                             "alpha_dropout: 0.1",
                             "rescaling: {scale: 2}",
                             "layer_scale: 0.5",
                             "gru: {units: 3, return_sequences: true}",
                             "bidirectional: {layers: [{lstm: {units: 3, return_sequences: true}}]}",
                             "time_distributed: {layers: [{dense: 2}]}",
                             "multi_head_attention: {num_heads: 2, key_dim: 2}",
                             "attention: {from: [e, e]}",
                             "additive_attention: {from: [e, e]}",
                             "transformer_encoder: {intermediate_dim: 3, num_heads: 2}",
                             "transformer_decoder: {from: [e, e], intermediate_dim: 3, num_heads: 2}",
                             "add: {from: [e, e]}",
                             "concatenate: {from: [e, e]}",
                             "residual: {layers: [{dense: 4}]}",
                             "repeat: {times: 2, layers: [{dense: 4}]}",
                             "rotary_embedding: {}",
                             "segment_embedding: {}"}) {
    CAPTURE(layers);
    CHECK(keeps("{" + std::string(layers) + "}"));
  }
  for (const char* layers :
       {"flatten", "reshape: {target_shape: [4, 6]}", "permute: {dims: [2, 1]}", "conv1d: {filters: 3, kernel_size: 2}",
        "max_pooling1d: {}", "global_max_pooling1d", "global_average_pooling1d", "lstm: 3",
        "bidirectional: {layers: [{gru: 3}]}", "einsum_dense: {equation: 'abc,cd->abd', output_shape: [6, 3]}"}) {
    CAPTURE(layers);
    const std::string text = layers;
    CHECK_FALSE(keeps((text.find(':') == std::string::npos ? text : "{" + text + "}") + ", {dense: 2}"));
  }
  // A sum has a mask only if all summands have one.
  CHECK_FALSE(
      keeps("{dense: {name: d, units: 4}}, {permute: {dims: [2, 1]}}, {permute: {name: p, dims: [2, 1]}}, "
            "{add: {from: [d, p]}}"));
}

TEST_CASE("errors of masks and of layers around layers say what to do") {
  CHECK(messages("{time_distributed: {layers: [{reshape: {target_shape: [2, 2]}}]}}, batch_normalization")
            .find("its input 6x2x2 has a padding mask 6, which needs a value for each position: put "
                  "batch_normalization before the layer that makes the mask, or use layer_normalization") !=
        std::string::npos);
  CHECK(messages("{bidirectional: {layers: [{dense: 3}]}}").find("layers must have one lstm, gru or simple_rnn") !=
        std::string::npos);
  CHECK(messages("{bidirectional: {layers: [{lstm: 3}], backward_layers: [{gru: 3}]}}")
            .find("one of both layers needs go_backwards: true") != std::string::npos);
  CHECK(messages("{bidirectional: {layers: [{lstm: 3}], backward_layers: [{gru: {units: 2, go_backwards: true}}], "
                 "merge_mode: sum}}")
            .find("needs two layers with the same number of units") != std::string::npos);
  for (const char* refused : {"spatial_dropout: 0.5", "dropout: {rate: 0.5, noise_shape: [1]}",
                              "batch_normalization: {}", "gru: {units: 3, dropout: 0.5}"}) {
    CAPTURE(refused);
    CHECK(messages("{reshape: [2, 2, -1]}, {time_distributed: {layers: [{" + std::string(refused) + "}]}}")
              .find("put it before or after it") != std::string::npos);
  }
  for (const char* reads_across :
       {"{time_distributed: {name: each, layers: [{dense: {name: in, units: 3}}]}}, {dense: {from: each/in, units: 2}}",
        "{dense: {name: before, units: 3}}, {time_distributed: {layers: [{dense: {from: before, units: 2}}]}}"}) {
    CHECK(messages(reads_across).find("is on the other side of time_distributed") != std::string::npos);
  }
  CHECK(messages("{bidirectional: {layers: [{lstm: {units: 3, return_sequences: true, go_backwards: true}}]}}")
            .find("set reverse_output like go_backwards") != std::string::npos);
  CHECK(messages("class_token").find("has no place for the class token") != std::string::npos);
  CHECK(messages("{repeat_vector: 3}").find("is not a vector") != std::string::npos);
  CHECK(messages("{attention: {from: [e]}}").find("needs [query, value] or [query, value, key]") != std::string::npos);
}

TEST_CASE("layers around layers have the shapes and parameters of Keras' layers") {
  const BuiltModel both = build("layers: [{bidirectional: {name: b, layers: [{lstm: 5}]}}]", {7, 3});
  CHECK(both.layers.back().output == Shape{10});
  CHECK(parameters(both) == 2 * (3 * 20 + 5 * 20 + 20));
  CHECK(both.graph.tensor(both.graph.parameters[0].tensor).name == "b/forward_layer/kernel");
  const BuiltModel films = build(
      "layers: [{time_distributed: {layers: [{conv2d: {filters: 4, kernel_size: 3}}, global_average_pooling2d]}}]",
      {5, 8, 8, 3});
  CHECK(films.layers.back().output == Shape{5, 4});
  // Layers that change values alone read whole samples, which have one number each.
  for (const std::string random :
       {"dropout: 0.5", "gaussian_noise: 0.5", "gaussian_dropout: 0.5", "alpha_dropout: 0.5"}) {
    CAPTURE(random);
    const BuiltModel of_steps = build("layers: [{time_distributed: {layers: [{dense: 4}, {" + random + "}]}}]", {5, 3});
    CHECK(of_steps.layers.back().output == Shape{5, 4});
    const Graph& graph = of_steps.graph;
    const auto reads_numbers = [&](const Op& op) { return std::ranges::count(op.inputs, graph.samples) > 0; };
    const auto found = std::ranges::find_if(graph.ops, reads_numbers);
    REQUIRE(found != graph.ops.end());
    CHECK(graph.tensor(found->outputs[0]).type.shape.without_front() == Shape{5, 4});
  }
  CHECK(build("layers: [{dense: 4}, {repeat_vector: 3}]", {6}).layers.back().output == Shape{3, 4});
}

}  // namespace trainctl::testing::masks_test
