// Tests attention layers: shapes, parameters, the ops that they expand into, presets of transformers, and errors.
#include <algorithm>

#include "core/graph/ops/additive_attention.h"
#include "core/graph/ops/rotary.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::attention_test {
namespace {

Shape shape(const BuiltModel& model, const std::string& name) {
  for (const GraphParameter& parameter : model.graph.parameters) {
    const Tensor& tensor = model.graph.tensor(parameter.tensor);
    if (tensor.name == name) return tensor.type.shape;
  }
  FAIL("there is no parameter " << name);
  return {};
}

const Op& op(const BuiltModel& model, const std::string& kind) {
  const auto found = std::ranges::find_if(model.graph.ops, [&](const Op& each) { return each.def->kind() == kind; });
  REQUIRE(found != model.graph.ops.end());
  return *found;
}

BuildOptions token_options(std::int64_t positions, bool documents = false) {
  BuildOptions options;
  options.batch = 2;
  options.inputs[0].sample = {positions};
  options.inputs[0].format.dtype = DType::int32;
  if (!documents) return options;
  options.inputs[0].name = "text";
  options.inputs.push_back(options.inputs[0]);
  options.inputs[1].name = "documents";
  return options;
}

BuiltModel build_tokens(const std::string& yaml, std::int64_t positions, bool documents = false) {
  Reader reader;
  BuiltModel model = build(yaml, token_options(positions, documents), reader);
  reader.throw_if_failed();
  return model;
}

}  // namespace

TEST_CASE("multi_head_attention has Keras' parameters and options") {
  const BuiltModel model = build(
      "layers: [{multi_head_attention: {name: a, num_heads: 3, key_dim: 4, value_dim: 5, use_causal_mask: true, "
      "sliding_window: 6, dropout: 0.25}}]",
      {7, 10});
  CHECK(model.layers[0].output == Shape{7, 10});
  CHECK(parameters(model) == 2 * (10 * 12 + 12) + 10 * 15 + 15 + 15 * 10 + 10);  // as keras.layers counts them
  CHECK(shape(model, "a/query/kernel") == Shape{10, 12});
  CHECK(shape(model, "a/value/bias") == Shape{15});
  CHECK(shape(model, "a/attention_output/kernel") == Shape{15, 10});
  const AttentionAttributes& a = op(model, "attention").as<Attention>().a;
  CHECK(a.head_size == 4);
  CHECK(a.value_size == 5);
  CHECK(a.scale == 0.5f);
  CHECK(a.causal);
  CHECK(a.window == 6);
  CHECK(a.dropout.rate == 0.25f);
  const BuiltModel evaluation =
      build("layers: [{multi_head_attention: {num_heads: 3, key_dim: 4, dropout: 0.25}}]", {7, 10}, false);
  CHECK(op(evaluation, "attention").as<Attention>().a.dropout.rate == 0);
}

TEST_CASE("attention reads query, value and key from other layers") {
  const BuiltModel model = build(R"(layers:
  - dense: {name: memory, units: 6}
  - dense: {name: keys, units: 8}
  - multi_head_attention: {name: a, from: [input, memory, keys], num_heads: 2, key_dim: 4, output_shape: 9, use_bias: false})",
                                 {7, 10});
  CHECK(shape(model, "a/query/kernel") == Shape{10, 8});
  CHECK(shape(model, "a/value/kernel") == Shape{6, 8});
  CHECK(shape(model, "a/key/kernel") == Shape{8, 8});
  CHECK(model.layers.back().output == Shape{7, 9});
}

TEST_CASE("blocks of transformers have the parameters of keras-hub's layers") {
  const BuiltModel encoder = build(
      "layers: [{transformer_encoder: {name: e, intermediate_dim: 7, num_heads: 3, dropout: 0.1, normalize_first: "
      "true}}, {dense: 2}]",
      {5, 12});
  // As keras-hub counts them, with the dense layer.
  CHECK(parameters(encoder) == 4 * (12 * 12 + 12) + 2 * 24 + 12 * 7 + 7 + 7 * 12 + 12 + 12 * 2 + 2);
  CHECK(shape(encoder, "e/self_attention_layer/query/kernel") == Shape{12, 12});
  CHECK(shape(encoder, "e/self_attention_layer_norm/gamma") == Shape{12});
  CHECK(shape(encoder, "e/feedforward_output_dense/kernel") == Shape{7, 12});
  CHECK(encoder.blocks == std::set<std::string>{"e"});
  CHECK_FALSE(op(encoder, "attention").as<Attention>().a.causal);
  CHECK(op(encoder, "attention").as<Attention>().a.dropout.rate == 0.1f);
  const BuiltModel decoder = build(
      "layers: [{dense: {name: y, units: 8}}, {transformer_decoder: {name: d, from: [input, y], intermediate_dim: 7, "
      "num_heads: 3}}]",
      {5, 12});
  CHECK(shape(decoder, "d/self_attention/query/kernel") == Shape{12, 12});
  CHECK(shape(decoder, "d/cross_attention/value/kernel") == Shape{8, 12});
  CHECK(shape(decoder, "d/cross_attention_layer_norm/beta") == Shape{12});
  CHECK(op(decoder, "attention").as<Attention>().a.causal);
  CHECK(decoder.layers.back().output == Shape{5, 12});
  const auto problem = [](const std::string& layer, Shape sample) {
    return errors("layers:\n  - dense: {name: y, units: 8}\n  - " + layer, std::move(sample));
  };
  CHECK(problem("transformer_encoder: {name: e, intermediate_dim: 7, num_heads: 9}", {5, 12}) ==
        "m.yaml:3:5: transformer_encoder 'e': vectors of length 8 cannot be divided among 9 heads: use at most 8 heads "
        "(from 'y' at 2:5)");
  CHECK(problem("transformer_decoder: {from: [y, input, y], intermediate_dim: 7, num_heads: 2}", {5, 12})
            .find("from names 3 layers, but a decoder reads one sequence") != std::string::npos);
  CHECK(problem("transformer_encoder: {intermediate_dim: 7, num_heads: 2}", {12})
            .find("is not a sequence (steps, channels)") != std::string::npos);
}

TEST_CASE("additive attention has Keras' parameters") {
  const auto attention = [](const std::string& layer) {
    return build("layers: [{dense: {name: y, units: 5}}, {" + layer + "}]", {7, 5});
  };
  const BuiltModel additive = attention("additive_attention: {name: a, from: [y, input]}");
  CHECK(shape(additive, "a/scale") == Shape{5});
  CHECK(op(additive, "additive_attention").inputs.size() == 4);
  const BuiltModel plain = attention("additive_attention: {from: [y, input], use_scale: false, use_causal_mask: true}");
  CHECK(parameters(plain) == 5 * 5 + 5);
  CHECK(op(plain, "additive_attention").as<AdditiveAttention>().a.causal);
  const BuiltModel concat = attention("attention: {name: a, from: [y, input], score_mode: concat}");
  CHECK(shape(concat, "a/concat_score_weight") == Shape{1, 1});
}

TEST_CASE("documents restrict attention and restart rotary positions") {
  const BuiltModel model = build_tokens(R"(inputs: [text, documents]
layers:
  - embedding: {name: x, from: text, input_dim: 9, output_dim: 8}
  - group_query_attention:
      from: x
      documents: documents
      num_query_heads: 4
      num_key_value_heads: 2
      head_dim: 6
      query_key_norm: 1e-6
      rotary_embedding: {max_wavelength: 500}
)",
                                        5, true);
  const Op& attention = op(model, "attention");
  CHECK(attention.as<Attention>().a.documents);
  CHECK(attention.inputs[3] == model.graph.inputs[1]);
  const Op& rotary = op(model, "rotary");
  CHECK(rotary.as<Rotary>().a.head_size == 6);
  CHECK(rotary.inputs[1] == model.graph.inputs[1]);
  CHECK(shape(model, "group_query_attention/key_norm/scale") == Shape{6});
}

TEST_CASE("presets of transformers have the published numbers of parameters") {
  CHECK(parameters(build_tokens("preset: gpt2", 1024)) == 124439808);
  CHECK(parameters(build_tokens("{preset: gpt2, with: {layers: 48, heads: 25, width: 1600, mlp: 6400}}", 1024)) ==
        1557611200);
  CHECK(parameters(build_tokens("preset: llama", 2048)) == 134515008);  // SmolLM2 135M
  CHECK(parameters(build_tokens("{preset: llama, with: {vocabulary: 128256, layers: 16, width: 2048, heads: 32, "
                                "key_heads: 8, mlp: 8192, rotary: {max_wavelength: 5e5, scaling: llama3, "
                                "scaling_factor: 32}}}",
                                8)) == 1235814400);  // Llama 3.2 1B
  CHECK(
      parameters(build_tokens("{preset: llama, with: {vocabulary: 128256, layers: 32, width: 4096, heads: 32, "
                              "key_heads: 8, head_size: 128, mlp: 14336, rotary: {max_wavelength: 5e5}, tied: false}}",
                              8)) == 8030261248);  // Llama 3 8B
  CHECK(parameters(build_tokens("{preset: llama, with: {vocabulary: 151936, layers: 28, width: 1024, heads: 16, "
                                "key_heads: 8, head_size: 128, mlp: 3072, query_key_norm: 1e-6}}",
                                8)) == 596049920);  // Qwen 3 0.6B
  CHECK(parameters(build_tokens("{preset: llama, with: {vocabulary: 32000, layers: 32, width: 4096, heads: 32, "
                                "key_heads: 8, head_size: 128, mlp: 14336, window: 4096, tied: false}}",
                                8)) == 7241732096);  // Mistral 7B
}

TEST_CASE("impossible attention is reported with the location of the layer") {
  CHECK(
      errors("layers: [{group_query_attention: {num_query_heads: 6, num_key_value_heads: 4, head_dim: 2}}]", {7, 10}) ==
      "m.yaml:1:10: group_query_attention 'group_query_attention': 6 heads of queries cannot share 4 heads of keys: "
      "the "
      "one number must divide the other (from the input)");
  CHECK(
      errors("layers: [{multi_head_attention: {num_heads: 2, key_dim: 4}}]", {7}) ==
      "m.yaml:1:10: multi_head_attention 'multi_head_attention': input 7 is not a sequence (steps, channels) (from the "
      "input)");
  CHECK(errors("layers: [{multi_head_attention: {num_heads: 2, key_dim: 3, rotary_embedding: {}}}]", {7, 4}) ==
        "m.yaml:1:10: multi_head_attention 'multi_head_attention': 3 values of heads of 3 values cannot be rotated in "
        "pairs (from 'multi_head_attention' at 1:10)");
  CHECK(
      errors("layers: [{multi_head_attention: {num_heads: 2, key_dim: 3, documents: input}}]", {7, 4}) ==
      "m.yaml:1:10: multi_head_attention 'multi_head_attention': `documents` needs `from`, with the name of the layer "
      "whose output is the query (from the input)");
}

}  // namespace trainctl::testing::attention_test
