// Tests the layers of language models: shapes, parameters and errors of embeddings, positions, gates and
// rms_normalization.
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/gated_linear_unit.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/rotary.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::language_layers_test {
namespace {

BuildOptions of_tokens(Shape sample) {
  BuildOptions options;
  options.batch = 2;
  options.inputs[0].sample = std::move(sample);
  options.inputs[0].format.dtype = DType::int32;
  return options;
}

BuiltModel build_on_tokens(const std::string& layers, std::int64_t steps = 6) {
  Reader reader;
  BuiltModel model = build("layers:\n" + layers, of_tokens({steps}), reader);
  reader.throw_if_failed();
  return model;
}

std::string errors_on_tokens(const std::string& layers, std::int64_t steps = 6) {
  Reader reader;
  build("layers:\n" + layers, of_tokens({steps}), reader);
  std::string text;
  for (const Diagnostic& diagnostic : reader.diagnostics()) text += (text.empty() ? "" : "\n") + to_string(diagnostic);
  return text;
}

std::vector<std::string> names_of_parameters(const BuiltModel& model) {
  std::vector<std::string> names;
  for (const GraphParameter& parameter : model.graph.parameters) {
    const Tensor& tensor = model.graph.tensor(parameter.tensor);
    names.push_back(tensor.name + " " + to_string(tensor.type.shape));
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("rms_normalization has a scale of the last dimension, without weight decay") {
  const BuiltModel model = build("layers: [{rms_normalization: {name: n}}, {dense: 2}]", Shape{4, 5});
  const GraphParameter& scale = model.graph.parameters[0];
  CHECK(names_of_parameters(model)[0] == "n/scale 5");
  CHECK(scale.initializer.name == "ones");
  CHECK_FALSE(scale.decay);
  const auto& norm = model.graph.ops[0].as<LayerNorm>();
  CHECK_FALSE(norm.a.centered);
  CHECK(norm.a.epsilon == 1e-6f);
  CHECK(model.layers[0].output == Shape{4, 5});
}

TEST_CASE("gated_linear_unit multiplies by an activation of the gate") {
  const std::string start =
      "layers:\n  - dense: {name: gate, units: 3}\n  - dense: {name: up, from: input, units: 3}\n";
  const BuiltModel model =
      build(start + "  - gated_linear_unit: {from: [gate, up], activation: {name: gelu, approximate: true}}", Shape{5});
  CHECK(model.graph.ops[2].as<GatedLinearUnit>().function.kind == ActivationKind::gelu_tanh);
  CHECK(model.graph.ops[2].inputs ==
        std::vector<TensorId>{model.graph.ops[0].outputs[0], model.graph.ops[1].outputs[0]});
  CHECK(errors(start + "  - gated_linear_unit: {from: [gate, up, input]}", Shape{5}) ==
        "m.yaml:4:31: from names 3 layers, but a gated linear unit needs two: [gate, up]");
  CHECK(errors(start + "  - gated_linear_unit: {name: g, from: [gate, input]}\n  - add: {from: [up, g]}", Shape{5}) ==
        "m.yaml:4:5: gated_linear_unit 'g': 3 of 'gate' and 5 of 'input' are different shapes (from the input)");
  CHECK(
      errors(start + "  - gated_linear_unit: {name: g, from: [gate, up], activation: softmax}", Shape{5}) ==
      "m.yaml:4:5: gated_linear_unit 'g': the activation softmax is not element-wise: use sigmoid, silu, gelu or relu "
      "(from 'gate' at 2:5)");
}

TEST_CASE("category_encoding has a value for each token of the vocabulary") {
  const auto shape = [](const std::string& keys, std::int64_t steps = 6) {
    return build_on_tokens("  - category_encoding: {num_tokens: 9" + keys + "}\n  - dense: 2", steps).layers[0].output;
  };
  CHECK(shape("") == Shape{9});
  CHECK(shape(", output_mode: count") == Shape{9});
  CHECK(shape(", output_mode: one_hot") == Shape{6, 9});
  CHECK(shape(", output_mode: one_hot", 1) == Shape{9});
  CHECK(errors("layers:\n  - category_encoding: {name: c, num_tokens: 9}\n  - dense: 2", Shape{5}) ==
        "m.yaml:2:5: category_encoding 'c': input 5 holds values, not tokens: store them as whole numbers (from the "
        "input)");
}

TEST_CASE("rotary_embedding rotates each head, with scaled angles where the config asks for it") {
  const auto attributes = [](const std::string& keys, const Shape& sample) {
    return build("layers: [{rotary_embedding: {" + keys + "}}, {dense: 2}]", sample).graph.ops[0].as<Rotary>().a;
  };
  const RotaryAttributes plain = attributes("num_heads: 3", {7, 24});
  CHECK(plain.head_size == 8);
  CHECK(plain.width == 8);
  CHECK(plain.pairs == RotaryPairs::halves);
  CHECK(plain.base == 10'000);
  const RotaryAttributes llama = attributes(
      "num_heads: 2, rotary_dim: 4, interleaved: true, max_wavelength: 500000, scaling: llama3, scaling_factor: 8",
      {7, 24});
  CHECK(llama.width == 4);
  CHECK(llama.pairs == RotaryPairs::neighbours);
  // Llama 3.1's frequencies, by transformers 5.24 (modeling_rope_utils.py) for heads of 128 values.
  RotaryAttributes heads = llama;
  heads.head_size = heads.width = 128;
  const std::vector<double> frequencies = rotary_frequencies(heads);
  CHECK(frequencies[1] == Approx(0.8146172166).epsilon(1e-6));
  CHECK(frequencies[30] == Approx(0.0013718937).epsilon(1e-6));
  CHECK(frequencies[32] == Approx(0.00052484602).epsilon(1e-6));
  CHECK(frequencies[63] == Approx(3.068926e-07).epsilon(1e-6));
  const auto wrong = [](const std::string& keys, const Shape& sample) {
    return errors("layers:\n  - rotary_embedding: {name: r, " + keys + "}\n  - dense: 2", sample);
  };
  CHECK(wrong("num_heads: 5", {7, 24}) ==
        "m.yaml:2:5: rotary_embedding 'r': 5 heads do not divide the 24 values of a position (from the input)");
  CHECK(wrong("num_heads: 3, rotary_dim: 10", {7, 24}) ==
        "m.yaml:2:5: rotary_embedding 'r': 10 values of heads of 8 values cannot be rotated in pairs (from the input)");
  CHECK(wrong("num_heads: 8", {7, 24}) ==
        "m.yaml:2:5: rotary_embedding 'r': 3 values of heads of 3 values cannot be rotated in pairs (from the input)");
  CHECK(wrong("rotary_dim: 3", {7, 24}) == "m.yaml:2:45: rotary_dim 3 is odd, but values are rotated in pairs");
  CHECK(wrong("scaling_factor: 2", {7, 24}) ==
        "m.yaml:2:49: scaling_factor has no effect without scaling: linear or llama3");
  CHECK(wrong("num_heads: 2", {24}) ==
        "m.yaml:2:5: rotary_embedding 'r': input 24 is not a sequence (steps, channels) (from the input)");
}

TEST_CASE("a second use of reversible_embedding gives logits by the same table") {
  const BuiltModel tied = build_on_tokens(R"(
  - reversible_embedding: {name: tokens, input_dim: 11, output_dim: 4}
  - reversible_embedding: {name: tokens, reverse: true})");
  CHECK(names_of_parameters(tied) == Names{"tokens/embeddings 11x4"});
  CHECK(tied.layers[0].output == Shape{6, 4});
  CHECK(tied.layers[1].output == Shape{6, 11});
  CHECK(tied.layers[1].parameters == 0);
  CHECK(tied.graph.ops[1].inputs[1] == tied.graph.ops[0].inputs[1]);
  const BuiltModel own = build_on_tokens(R"(
  - reversible_embedding: {name: tokens, input_dim: 11, output_dim: 4, tie_weights: false, logit_soft_cap: 30}
  - dense: {name: between, units: 4}
  - reversible_embedding: {name: tokens, reverse: true})");
  CHECK(names_of_parameters(own) ==
        Names{"tokens/embeddings 11x4", "between/kernel 4x4", "between/bias 4", "tokens/reverse_embeddings 4x11"});
  CHECK(own.graph.ops.size() == 6);  // product, division, tanh, product
  CHECK(own.layers[2].output == Shape{6, 11});
}

TEST_CASE("wrong uses of reversible_embedding are reported") {
  const std::string first = "  - reversible_embedding: {name: t, input_dim: 11, output_dim: 4}\n";
  CHECK(errors_on_tokens(first + "  - reversible_embedding: {name: t, reverse: true, input_dim: 11}") ==
        "m.yaml:3:63: with reverse, the layer has the options of its first use: leave out "
        "input_dim");
  CHECK(errors_on_tokens(first + "  - reversible_embedding: {reverse: true}") ==
        "m.yaml:3:27: with reverse, `name` must be the name of the first use of the layer");
  CHECK(errors_on_tokens("  - reversible_embedding: {name: t, output_dim: 4}") ==
        "m.yaml:2:27: reversible_embedding needs 'input_dim' in its first use");
  CHECK(errors_on_tokens(first + "  - reversible_embedding: {name: u, reverse: true}") ==
        "m.yaml:3:5: reversible_embedding 'u': reverse: no layer before it has this name; give both uses of the layer "
        "the same name (from 't' at 2:5)");
  CHECK(errors_on_tokens(first + "  - dense: 5\n  - reversible_embedding: {name: t, reverse: true}") ==
        "m.yaml:4:5: reversible_embedding 't@2': reverse: the input has 5 values in its last dimension, but output_dim "
        "is 4 (from 'dense' at 3:5)");
  CHECK(
      errors_on_tokens("  - embedding: {name: t, input_dim: 11, output_dim: 4}\n  - reversible_embedding: {name: t, "
                       "reverse: true}")
          .find(
              "means the same layer with the same weights and options (embedding before, reversible_embedding now)") !=
      std::string::npos);
}

TEST_CASE("einsum_dense is a product over the last dimensions") {
  const BuiltModel heads = build(
      "layers:\n  - einsum_dense: {name: q, equation: 'abc,cde->abde', output_shape: [none, 4, 2], bias_axes: de}\n"
      "  - einsum_dense: {name: o, equation: 'abcd,cde->abe', output_shape: [none, 3], bias_axes: e}\n"
      "  - einsum_dense: {name: last, equation: '...x,xy->...y', output_shape: 5, activation: tanh}",
      Shape{7, 6});
  CHECK(names_of_parameters(heads) ==
        Names{"q/kernel 6x4x2", "q/bias 4x2", "o/kernel 4x2x3", "o/bias 3", "last/kernel 3x5"});
  CHECK(heads.layers[0].output == Shape{7, 4, 2});
  CHECK(heads.layers[1].output == Shape{7, 3});
  CHECK(heads.layers[2].output == Shape{7, 5});
  const auto wrong = [](const std::string& keys) {
    return errors("layers:\n  - einsum_dense: {name: e, " + keys + "}", Shape{7, 6});
  };
  for (const char* equation : {"abc,cd->adb", "abc,bd->acd", "abc,dc->abd", "abc,cd", "abc,cb->abb", "abc,c->ab"}) {
    CAPTURE(equation);
    CHECK(wrong(std::string("equation: '") + equation + "', output_shape: [none, 3]").find("supported are products") !=
          std::string::npos);
  }
  CHECK(wrong("equation: 'abc,cd->abd', output_shape: [3, none]") ==
        "m.yaml:2:68: output_shape must end with the sizes of d, the new dimensions of the equation");
  CHECK(wrong("equation: 'abc,cde->abde', output_shape: [none, 3, 2], bias_axes: e") ==
        "m.yaml:2:95: bias_axes e is not supported: the bias has the new dimensions of the equation, de");
  CHECK(wrong("equation: 'abcd,de->abce', output_shape: [none, none, 2]") ==
        "m.yaml:2:5: einsum_dense 'e': the equation abcd,de->abce does not have the dimensions of a batch of 7x6 (from "
        "the input)");
}

TEST_CASE("positions have vectors of their own, which are added to those of tokens") {
  const BuiltModel both = build_on_tokens(
      "  - token_and_position_embedding: {name: e, vocabulary_size: 11, sequence_length: 8, embedding_dim: 4}\n"
      "  - dense: 2");
  CHECK(names_of_parameters(both)[0] == "e/token_embedding/embeddings 11x4");
  CHECK(names_of_parameters(both)[1] == "e/position_embedding/embeddings 8x4");
  CHECK(both.layers[0].output == Shape{6, 4});
  CHECK(both.graph.ops[1].as<PositionEmbedding>().adds);
  const BuiltModel added = build_on_tokens(R"(
  - embedding: {name: tokens, input_dim: 11, output_dim: 4}
  - position_embedding: {name: positions, sequence_length: 6}
  - add: {from: [tokens, positions]})");
  CHECK(names_of_parameters(added) == Names{"tokens/embeddings 11x4", "positions/embeddings 6x4"});
  CHECK(added.layers[1].output == Shape{6, 4});
  CHECK(errors_on_tokens("  - token_and_position_embedding: {name: e, vocabulary_size: 11, sequence_length: 5, "
                         "embedding_dim: 4}") ==
        "m.yaml:2:5: token_and_position_embedding 'e': the input has 6 positions, but sequence_length is 5: use "
        "samples of at most 5 positions, or set "
        "sequence_length to 6 (of a preset: `with: {positions: 6}`) (from the input)");
  CHECK(
      errors("layers:\n  - token_and_position_embedding: {name: e, vocabulary_size: 11, sequence_length: 5, "
             "embedding_dim: 4}",
             Shape{5}) ==
      "m.yaml:2:5: token_and_position_embedding 'e': input 5 is not a sequence of tokens (positions) (from the input)");
}

}  // namespace trainctl::testing::language_layers_test
