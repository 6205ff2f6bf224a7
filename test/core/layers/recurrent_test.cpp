// Tests lstm, gru and simple_rnn: shapes, parameters, initial values and errors.
#include <algorithm>

#include "core/base/random.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/passes/initialize.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::recurrent_test {
namespace {

const GraphParameter& parameter(const BuiltModel& model, const std::string& name) {
  const auto& all = model.graph.parameters;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const GraphParameter& p) { return model.graph.tensor(p.tensor).name == name; });
  REQUIRE(found != all.end());
  return *found;
}

Shape shape(const BuiltModel& model, const std::string& name) {
  return model.graph.tensor(parameter(model, name).tensor).type.shape;
}

std::vector<float> values(const BuiltModel& model, const std::string& name) {
  const GraphParameter& target = parameter(model, name);
  const Tensor& tensor = model.graph.tensor(target.tensor);
  std::vector<float> filled(static_cast<std::size_t>(tensor.type.shape.count()));
  initialize(target, tensor, 7, filled.data());
  return filled;
}

}  // namespace

TEST_CASE("lstm has Keras' parameters, and its forget bias begins at 1") {
  const BuiltModel model = build("layers: [{lstm: {name: l, units: 3, return_sequences: true}}, {lstm: 2}]", {5, 4});
  CHECK(model.layers[0].output == Shape{5, 3});
  CHECK(model.layers[1].output == Shape{2});
  CHECK(model.layers[0].parameters == 4 * 12 + 3 * 12 + 12);
  CHECK(shape(model, "l/kernel") == Shape{4, 12});
  CHECK(shape(model, "l/recurrent_kernel") == Shape{3, 12});
  CHECK(parameter(model, "l/kernel").initializer.name == "glorot_uniform");
  CHECK(parameter(model, "l/recurrent_kernel").initializer.name == "orthogonal");
  CHECK(parameter(model, "l/recurrent_kernel").decay);
  CHECK_FALSE(parameter(model, "l/bias").decay);
  CHECK(values(model, "l/bias") == std::vector<float>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0});
  const BuiltModel other = build(
      "layers: [{lstm: {name: l, units: 1, unit_forget_bias: false, bias_initializer: {name: constant, value: 0.5}}}]",
      {5, 4});
  CHECK(values(other, "l/bias") == std::vector<float>(4, 0.5f));
  CHECK(parameters(build("layers: [{lstm: {units: 3, use_bias: false}}]", {5, 4})) == 4 * 12 + 3 * 12);
}

TEST_CASE("gru has Keras' parameters, with the two rows of the bias as two parameters") {
  const BuiltModel model = build("layers: [{gru: {name: g, units: 3, return_sequences: true}}, {gru: 2}]", {5, 4});
  CHECK(model.layers[0].output == Shape{5, 3});
  CHECK(model.layers[1].output == Shape{2});
  CHECK(shape(model, "g/kernel") == Shape{4, 9});
  CHECK(shape(model, "g/recurrent_kernel") == Shape{3, 9});
  CHECK(shape(model, "g/bias") == Shape{9});
  CHECK(shape(model, "g/recurrent_bias") == Shape{9});
  CHECK(values(model, "g/bias") == std::vector<float>(9));
  CHECK(parameters(build("layers: [{gru: {units: 3, use_bias: false}}]", {5, 4})) == 4 * 9 + 3 * 9);
}

TEST_CASE("only training keeps the tensors that gradients need") {
  const std::string yaml = "layers: [{gru: 3}]";
  CHECK(build(yaml, {5, 4}, true).graph.ops.back().outputs.size() == 4);
  CHECK(build(yaml, {5, 4}, false).graph.ops.back().outputs.size() == 1);
}

TEST_CASE("simple_rnn has Keras' parameters") {
  const BuiltModel model = build(
      "layers: [{simple_rnn: {name: s, units: 3, return_sequences: true, reverse_output: true}}, {simple_rnn: 2}]",
      {5, 4});
  CHECK(model.layers[0].output == Shape{5, 3});
  CHECK(model.layers[1].output == Shape{2});
  CHECK(shape(model, "s/kernel") == Shape{4, 3});
  CHECK(shape(model, "s/recurrent_kernel") == Shape{3, 3});
  CHECK(shape(model, "s/bias") == Shape{3});
  CHECK(values(model, "s/bias") == std::vector<float>(3));
}

TEST_CASE("recurrent layers return their last states and begin with those of other layers") {
  const std::string encoder = "{lstm: {name: e, units: 3, return_state: true, return_sequences: true}}";
  const BuiltModel model = build(
      "layers: [" + encoder + ", {lstm: {name: d, from: input, units: 3, initial_state: e, return_sequences: true}}]",
      {5, 4});
  const Op& decoder = model.graph.ops.back();
  CHECK(model.layers[1].output == Shape{5, 3});
  REQUIRE(decoder.inputs.size() == 4);
  for (const std::size_t state : {2, 3}) {
    CHECK(model.graph.tensor(decoder.inputs[state]).type.shape.without_front() == Shape{3});
  }
  CHECK(model.graph.tensor(decoder.inputs[3]).name == "e/cell_state");
  // The states one by one, from a dense layer, in blocks, of layers that are used twice, and of a layer whose output
  // itself is not read.
  for (const char* layers :
       {"{lstm: {name: e, units: 3, return_state: true}}, {dense: {name: c, units: 3}}, "
        "{lstm: {from: input, units: 3, initial_state: [e/hidden_state, c]}}",
        "{lstm: {name: e, units: 3, return_state: true, return_sequences: true}}, "
        "{simple_rnn: {from: input, units: 3, initial_state: e/cell_state}}",
        "{gru: {name: g, units: 3, return_state: true}}, "
        "{gru: {name: g, from: input, units: 3, initial_state: g@1, return_state: true}}, "
        "{gru: {from: input, units: 3, initial_state: g}}",
        "{gru: {name: g, units: 3, return_state: true}}, {gru: {name: g, from: input, units: 3, return_state: true}}, "
        "{concatenate: {from: [g@1/hidden_state, g/hidden_state, g@1, g]}}",
        "{bidirectional: {name: b, layers: [{lstm: {units: 3, return_state: true}}]}}, "
        "{lstm: {from: input, units: 3, initial_state: b/backward_layer}}, {concatenate: {from: [b, lstm]}}"}) {
    CAPTURE(layers);
    CHECK(errors("layers: [" + std::string(layers) + "]", {5, 4}) == "");
  }
}

TEST_CASE("initial states that do not fit are errors") {
  const auto says = [](const std::string& layers, const std::string& text) {
    const std::string found = errors("layers: [" + layers + "]", {5, 4});
    CAPTURE(found);
    CHECK(found.find(text) != std::string::npos);
  };
  const std::string lstm = "{lstm: {name: e, units: 3, return_state: true}}, ";
  says("{lstm: {name: e, units: 3}}, {lstm: {from: input, units: 3, initial_state: e}}",
       "it has two states, hidden and cell, but initial_state gives 1");
  says(lstm + "{gru: {from: input, units: 3, initial_state: e}}", "it has one state, but initial_state gives 2");
  says(lstm + "{lstm: {from: input, units: 2, initial_state: e}}",
       "an initial state of 3 does not fit, since the states are 2");
  says(lstm + "{gru: {from: input, units: 3, initial_state: e/cell}}", "there is no layer 'e/cell' before it");
  says(lstm + "{bidirectional: {from: input, layers: [{lstm: {units: 3, initial_state: e}}]}}",
       "initial_state is not supported in a layer that is a part of another one");
  says("{time_distributed: {layers: [{gru: {units: 3, dropout: 0.5}}]}}, {dense: 1}",
       "it cannot be inside time_distributed");
}

TEST_CASE("options that recurrent layers do not support are errors") {
  const auto says = [](const std::string& layer, Shape sample, const std::string& text) {
    return errors("layers: [" + layer + "]", std::move(sample)).find(text) != std::string::npos;
  };
  CHECK(says("{lstm: 3}", {5}, "lstm 'lstm': input 5 is not a sequence (steps, channels)"));
  CHECK(says("{lstm: {units: 3, activation: relu}}", {5, 4}, "activation relu is not supported: use tanh"));
  CHECK(says("{gru: {units: 3, recurrent_activation: hard_sigmoid}}", {5, 4},
             "recurrent_activation hard_sigmoid is not supported: use sigmoid"));
  CHECK(says("{gru: {units: 3, reset_after: false}}", {5, 4}, "reset_after false"));
}

TEST_CASE("conv_lstm2d has Keras' shapes and parameters, and conv_lstm1d and conv_lstm3d those of their axes") {
  const BuiltModel model = build(
      "layers: [{conv_lstm2d: {name: a, filters: 3, kernel_size: [3, 2], strides: 2, padding: same, return_sequences: "
      "true}}, {conv_lstm2d: {name: b, filters: 2, kernel_size: 2, unit_forget_bias: false}}]",
      {4, 7, 6, 5});
  CHECK(model.layers[0].output == Shape{4, 4, 3, 3});
  CHECK(model.layers[1].output == Shape{3, 2, 2});
  CHECK(shape(model, "a/kernel") == Shape{3, 2, 5, 12});
  CHECK(shape(model, "a/recurrent_kernel") == Shape{3, 2, 3, 12});
  CHECK(values(model, "a/bias") == std::vector<float>{0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0});
  CHECK(values(model, "b/bias") == std::vector<float>(8));
  const BuiltModel rows = build("layers: [{conv_lstm1d: {name: a, filters: 3, kernel_size: 2}}]", {4, 7, 5});
  CHECK(rows.layers[0].output == Shape{6, 3});
  CHECK(shape(rows, "a/kernel") == Shape{2, 5, 12});
  const BuiltModel volumes =
      build("layers: [{conv_lstm3d: {name: a, filters: 3, kernel_size: 2, return_sequences: true}}]", {4, 7, 6, 5, 2});
  CHECK(volumes.layers[0].output == Shape{4, 6, 5, 4, 3});
}

TEST_CASE("conv_lstm2d returns its states and begins with given ones, and drops the same values in all steps") {
  const std::string encoder =
      "{conv_lstm2d: {name: e, filters: 3, kernel_size: 2, padding: same, return_state: true}}, ";
  const BuiltModel model = build("layers: [" + encoder +
                                     "{conv_lstm2d: {name: d, from: input, filters: 3, kernel_size: 2, padding: same, "
                                     "initial_state: [e/hidden_state, e/cell_state], dropout: 0.3, recurrent_dropout: "
                                     "0.2}}, {concatenate: {from: [d, e/cell_state]}}]",
                                 {4, 7, 6, 5}, true);
  CHECK(model.layers.back().output == Shape{7, 6, 6});
  int of_steps = 0, of_states = 0;
  for (const Op& op : model.graph.ops) {
    const auto* dropout = op.get_if<Dropout>();
    if (dropout == nullptr) continue;
    const bool is_input = dropout->unit == DropoutUnit::channel;
    ++(is_input ? of_steps : of_states);
    CHECK(model.graph.tensor(op.inputs[0]).type.shape.without_front() ==
          (is_input ? Shape{4, 7 * 6 * 5} : Shape{7, 6, 3}));
    CHECK(dropout->layer == name_hash(is_input ? "d" : "d/recurrent_dropout"));
  }
  CHECK(of_steps == 1);
  CHECK(of_states == 4);
  CHECK(errors("layers: [" + encoder + "{conv_lstm2d: {from: input, filters: 2, kernel_size: 2, initial_state: e}}]",
               {4, 7, 6, 5})
            .find("an initial state of 7x6x3 does not fit, since the states are 6x5x2") != std::string::npos);
  // A sequence may have one step, with and without initial states.
  CHECK(errors("layers: [{conv_lstm1d: {name: e, filters: 3, kernel_size: 2, padding: same, return_state: true}}, "
               "{reshape: {target_shape: [1, 7, 3]}}, {conv_lstm1d: {filters: 3, kernel_size: 1, initial_state: e}}]",
               {4, 7, 5}) == "");
  const BuiltModel one = build("layers: [" + encoder + "{concatenate: {from: [e, e/cell_state]}}]", {1, 7, 6, 5}, true);
  CHECK(one.layers.back().output == Shape{7, 6, 6});
  CHECK(shape(one, "e/recurrent_kernel") == Shape{2, 2, 3, 12});
}

TEST_CASE("inputs and options that conv_lstm2d does not compute are reported") {
  const auto problem = [](const std::string& options, Shape sample) {
    return errors("layers:\n  - conv_lstm2d: {filters: 3, kernel_size: 2" + options + "}", std::move(sample));
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(problem("", {7, 6, 5}), "input 7x6x5 is not a sequence (steps, height, width, channels)"));
  CHECK(has(problem(", activation: softmax", {4, 7, 6, 5}), "the activation softmax is not element-wise"));
  CHECK(has(problem("", {4, 1, 6, 5}), "kernel 2 exceeds input 1"));
  CHECK(has(errors("layers: [masking, {conv_lstm2d: {filters: 3, kernel_size: 2}}]", {4, 7, 6, 5}),
            "the input has a padding mask within its steps"));
}

}  // namespace trainctl::testing::recurrent_test
