// Tests how layers expand into ops: names, references, blocks, training, evaluation, logits and bfloat16.
#include <set>

#include "core/graph/ops/elementwise/activations.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::expansion_test {
namespace {

using Lines = std::vector<std::string>;

// "kind(inputs) -> outputs" of every op.
Lines ops(const Graph& graph) {
  const auto list = [&](const std::vector<TensorId>& ids) {
    std::string text;
    for (TensorId id : ids) text += (text.empty() ? "" : ", ") + graph.tensor(id).name;
    return text;
  };
  Lines lines;
  for (const Op& op : graph.ops) {
    lines.push_back(std::string(op.def->kind()) + "(" + list(op.inputs) + ") -> " + list(op.outputs));
  }
  return lines;
}

Lines layer_names(const BuiltModel& model) {
  Lines names;
  for (const auto& line : model.layers) names.push_back(line.name);
  return names;
}

const std::string network = R"(layers:
  - conv2d: {name: c1, filters: 4, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: bn1, momentum: 0.9}
  - max_pooling2d
  - dropout: 0.25
  - flatten
  - dense: {name: fc, units: 3, activation: softmax}
)";

}  // namespace

TEST_CASE("frozen layers keep their parameters and normalise by running statistics") {
  const BuiltModel model = build("freeze: [\"bn?\", fc]\n" + network, {4, 4, 1});
  CHECK(ops(model.graph)[1] ==
        "batch_norm_inference(c1/output, bn1/gamma, bn1/beta, bn1/moving_mean, bn1/moving_variance) -> bn1/output");
  for (const GraphParameter& parameter : model.graph.parameters) {
    CHECK(parameter.trainable == (model.graph.tensor(parameter.tensor).name == "c1/kernel"));
  }
  REQUIRE(model.graph.statistics.size() == 2);
  CHECK(model.graph.statistics[0].batch_value == no_tensor);
  CHECK(model.layers[0].trainable == 36);
  CHECK(model.layers.back().trainable == 0);

  // The name of a block means its layers, and the name of a layer all of its uses.
  const BuiltModel blocks = build(R"(freeze: [block, again]
layers:
  - dense: {name: again, units: 4}
  - dense: {name: again, units: 4}
  - residual: {name: block, layers: [dense: {name: inside, units: 4}]}
  - dense: {name: last, units: 2}
)",
                                  {4});
  for (const GraphParameter& parameter : blocks.graph.parameters) {
    const std::string& name = blocks.graph.tensor(parameter.tensor).name;
    CHECK(parameter.trainable == name.starts_with("last/"));
  }
}

TEST_CASE("patterns of frozen layers that match no layer or all layers are reported") {
  CHECK(errors("freeze: [\"dens*\", c2]\n" + network, {4, 4, 1}) ==
        "m.yaml:1:10: freeze: no layer is named 'dens*'; `trainctl check` without `freeze` lists the layers\n"
        "m.yaml:1:19: freeze: no layer is named 'c2'; did you mean 'c1'?");
  CHECK(errors("freeze: [\"c*\", bn1, fc]\n" + network, {4, 4, 1}) ==
        "m.yaml:1:10: freeze: every layer with weights is frozen, so that nothing would train");
}

TEST_CASE("layers expand into ops whose tensors have the layers' names") {
  const BuiltModel model = build(network, {4, 4, 1});
  CHECK(ops(model.graph) == Lines{"conv2d(input, c1/kernel) -> c1/output",
                                  "batch_norm(c1/output, bn1/gamma, bn1/beta) -> bn1/output, bn1/mean, bn1/variance",
                                  "pool2d(bn1/output) -> max_pooling2d/output, max_pooling2d/winners",
                                  "dropout(max_pooling2d/output, samples, step) -> dropout/output",
                                  "reshape(dropout/output) -> flatten/output",
                                  "dense(flatten/output, fc/kernel, fc/bias) -> fc/dense",
                                  "softmax(fc/dense) -> fc/output"});
  CHECK(model.graph.tensor(model.graph.outputs[0]).name == "fc/output");
  CHECK(model.graph.tensor(model.graph.samples).type == TensorType{{2}, DType::int64});
  CHECK(model.graph.tensor(model.graph.samples).role == Role::input);
  CHECK(model.graph.tensor(model.graph.step).role == Role::scalar);
  REQUIRE(model.graph.statistics.size() == 2);
  CHECK(model.graph.tensor(model.graph.statistics[0].moving).name == "bn1/moving_mean");
  CHECK(model.graph.tensor(model.graph.statistics[1].batch_value).name == "bn1/variance");
  CHECK(model.graph.statistics[0].momentum == 0.9f);
  CHECK(model.graph.statistics[0].initial == 0);
  CHECK(model.graph.statistics[1].initial == 1);
  const auto& line = model.layers.back();
  CHECK(line.kind == "dense");
  CHECK(line.output == Shape{3});
  CHECK(line.ops == 2);
  CHECK(line.parameters == 16 * 3 + 3);
  CHECK(line.location == SourceLocation{"m.yaml", 7, 5});
  std::set<std::string> names;
  for (const Tensor& tensor : model.graph.tensors) CHECK(names.insert(tensor.name).second);
}

TEST_CASE("evaluation uses running statistics and no dropout, and logits leave the softmax to the loss") {
  const BuiltModel model = build(network, {4, 4, 1}, false, true);
  CHECK(
      ops(model.graph) ==
      Lines{"conv2d(input, c1/kernel) -> c1/output",
            "batch_norm_inference(c1/output, bn1/gamma, bn1/beta, bn1/moving_mean, bn1/moving_variance) -> bn1/output",
            "pool2d(bn1/output) -> max_pooling2d/output", "reshape(max_pooling2d/output) -> flatten/output",
            "dense(flatten/output, fc/kernel, fc/bias) -> fc/output"});
  CHECK(model.graph.samples == no_tensor);
  CHECK(model.graph.statistics[0].batch_value == no_tensor);
  CHECK(layer_names(model) == layer_names(build(network, {4, 4, 1})));
  // Parameters are the same in training and evaluation, also in their order.
  const BuiltModel training = build(network, {4, 4, 1});
  REQUIRE(training.graph.parameters.size() == model.graph.parameters.size());
  for (std::size_t i = 0; i < model.graph.parameters.size(); ++i) {
    CHECK(training.graph.tensor(training.graph.parameters[i].tensor).name ==
          model.graph.tensor(model.graph.parameters[i].tensor).name);
  }
}

TEST_CASE("in bfloat16 the input is cast once, activations are bfloat16, and parameters stay float32") {
  Reader reader;
  BuildOptions options;
  options.batch = 3;
  options.inputs[0].sample = {4, 4, 1};
  options.compute = DType::bfloat16;
  const BuiltModel model = build(network, options, reader);
  REQUIRE(reader.ok());
  CHECK(ops(model.graph)[0] == "cast(input) -> input/cast");
  CHECK(model.graph.tensor(model.graph.inputs[0]).type == TensorType{{3, 4, 4, 1}, DType::float32});
  CHECK(model.graph.tensor(model.graph.outputs[0]).type == TensorType{{3, 3}, DType::bfloat16});
  for (const GraphParameter& parameter : model.graph.parameters) {
    CHECK(model.graph.tensor(parameter.tensor).type.dtype == DType::float32);
    CHECK(model.graph.tensor(parameter.tensor).role == Role::parameter);
  }
}

TEST_CASE("layers without a name are numbered by kind, without names that are taken") {
  const BuiltModel model = build(R"(layers:
  - dense: 4
  - dense: {name: dense_1, units: 4}
  - activation: tanh
  - dense: 4
  - residual:
      layers:
        - dense: 4
        - dense: 4
      shortcut:
        - dense: 4
  - repeat:
      times: 2
      layers:
        - dense: 4
        - residual: {name: block, layers: [dense: 4]}
)",
                                 {5});
  CHECK(layer_names(model) == Lines{"dense", "dense_1", "activation", "dense_2", "residual/dense", "residual/dense_1",
                                    "residual/shortcut/dense", "residual", "repeat/0/dense", "repeat/0/block/dense",
                                    "repeat/0/block", "repeat/1/dense", "repeat/1/block/dense", "repeat/1/block"});
  CHECK(model.graph.parameters.size() == 2 * 10);
  CHECK(model.layers[7].ops == 1);
  CHECK(model.layers[7].parameters == 0);
}

TEST_CASE("a residual block adds its shortcut and then activates") {
  const BuiltModel model = build(R"(layers:
  - residual:
      name: block
      activation: relu
      layers:
        - dense: {name: a, units: 6, activation: gelu}
        - dense: {name: b, units: 6, use_bias: false}
)",
                                 {6});
  CHECK(ops(model.graph) == Lines{"dense(input, block/a/kernel, block/a/bias) -> block/a/dense",
                                  "activation(block/a/dense) -> block/a/output",
                                  "dense(block/a/output, block/b/kernel) -> block/b/output",
                                  "add(block/b/output, input) -> block/add", "activation(block/add) -> block/output"});
}

TEST_CASE("references name layers of the same list, of enclosing lists and by path, and the input") {
  const BuiltModel model = build(R"(layers:
  - dense: {name: a, units: 4}
  - residual:
      name: block
      layers:
        - dense: {name: a, units: 4}
        - dense: {name: b, units: 4, from: input}
        - add: {from: [a, b, a]}
  - dense: {name: c, units: 2, from: block/b}
  - concatenate: {from: [block, c, a, input]}
)",
                                 {4});
  const Lines lines = ops(model.graph);
  CHECK(lines[2] == "dense(input, block/b/kernel, block/b/bias) -> block/b/output");
  CHECK(lines[3] == "add(block/a/output, block/b/output) -> block/add/add");
  CHECK(lines[4] == "add(block/add/add, block/a/output) -> block/add/output");
  CHECK(lines[5] == "add(block/add/output, a/output) -> block/output");
  CHECK(lines[6] == "dense(block/b/output, c/kernel, c/bias) -> c/output");
  CHECK(lines[7] == "concatenate(block/output, c/output, a/output, input) -> concatenate/output");
  CHECK(model.graph.tensor(model.graph.outputs[0]).type.shape == Shape{2, 14});
}

TEST_CASE("activations are found by Keras' names, with their options") {
  const auto function = [](const std::string& activation) {
    const BuiltModel model = build("layers:\n  - dense: 3\n  - activation: " + activation, {4});
    return to_string(model.graph.ops[1].as<Activation>().function);
  };
  for (const std::string name : {"relu", "gelu", "silu", "tanh", "sigmoid"}) CHECK(function(name) == name);
  CHECK(function("leaky_relu") == "leaky_relu(0.3)");
  CHECK(function("{activation: leaky_relu, negative_slope: 0.1}") == "leaky_relu(0.1)");
  CHECK(build("layers:\n  - dense: {units: 3, activation: linear}", {4}).graph.ops.size() == 1);
  CHECK(build("layers:\n  - dense: {units: 3, activation: {name: leaky_relu, negative_slope: 0.2}}", {4})
            .graph.ops[1]
            .def->attributes() == "leaky_relu(0.2)");
}

TEST_CASE("the final activation of the network is found, and logits leave it out") {
  const std::pair<std::string, FinalActivation> cases[] = {
      {"layers:\n  - dense: {units: 3, activation: softmax}", FinalActivation::softmax},
      {"layers:\n  - dense: 3\n  - activation: sigmoid", FinalActivation::sigmoid},
      {"layers:\n  - dense: {units: 3, activation: relu}", FinalActivation::none},
      {"layers:\n  - dense: {units: 3, activation: softmax}\n  - dense: 2", FinalActivation::none},
      {"layers:\n  - residual: {layers: [dense: 4], activation: sigmoid}", FinalActivation::sigmoid},
      {"layers:\n  - repeat: {times: 2, layers: [dense: {units: 4, activation: softmax}]}", FinalActivation::softmax},
      {"layers:\n  - reshape: [2, 2]\n  - time_distributed: {layers: [dense: {units: 3, activation: softmax}]}",
       FinalActivation::softmax},
  };
  for (const auto& [yaml, expected] : cases) {
    CAPTURE(yaml);
    Reader reader;
    const ModelOptions model = read_model(yaml, reader);
    REQUIRE(reader.ok());
    CHECK(final_activation(model, 0) == expected);
    const std::size_t left_out = expected == FinalActivation::none ? 0 : 1;
    CHECK(build(yaml, {4}, true, true).graph.ops.size() == build(yaml, {4}, true, false).graph.ops.size() - left_out);
  }
}

TEST_CASE("a model is the same after it is written and read") {
  const std::string yaml = R"(layers:
  - conv2d: {name: c, filters: 3, kernel_size: 3, padding: [1, 2], kernel_initializer: {name: constant, value: 0.5}}
  - residual:
      shortcut:
        - conv2d: {filters: 3, kernel_size: 1}
      layers:
        - conv2d: {filters: 3, kernel_size: 3, padding: same, activation: {name: leaky_relu, negative_slope: 0.2}}
  - concatenate: {from: [c, residual]}
  - activation: leaky_relu
  - repeat: {times: 2, layers: [dropout: 0.5, batch_normalization]}
)";
  Reader reader;
  const ModelOptions model = read_model(yaml, reader);
  const Node written = section_of<ModelOptions>().write(&model);
  ModelOptions again;
  REQUIRE(section_of<ModelOptions>().read(written, reader, &again));
  CHECK(differences(written, section_of<ModelOptions>().write(&again)).empty());
  BuildOptions options;
  options.inputs[0].sample = {8, 8, 2};
  const BuiltModel first = build_model(model, options, reader), second = build_model(again, options, reader);
  REQUIRE(reader.ok());
  CHECK(ops(first.graph) == ops(second.graph));
  for (std::size_t i = 0; i < first.graph.ops.size(); ++i) {
    CHECK(first.graph.ops[i].def->attributes() == second.graph.ops[i].def->attributes());
  }
  CHECK_FALSE(written.find("preset"));
}

TEST_CASE("a name that is used again is the same layer with the same weights") {
  const std::string twins = R"(layers:
  - residual: {name: block, layers: [{dense: {name: d, units: 4}}, {batch_normalization: {name: n}}]}
  - dropout: {name: drop, rate: 0.5}
  - residual: {name: block, layers: [{dense: {name: d, units: 4}}, {batch_normalization: {name: n}}]}
  - dropout: {name: drop, rate: 0.5}
  - concatenate: {from: [block, drop, block@1]}
  - dense: 3
)";
  const BuiltModel model = build(twins, {4});
  CHECK(
      ops(model.graph) ==
      Lines{"dense(input, block/d/kernel, block/d/bias) -> block/d/output",
            "batch_norm(block/d/output, block/n/gamma, block/n/beta) -> block/n/output, block/n/mean, block/n/variance",
            "add(block/n/output, input) -> block/output", "dropout(block/output, samples, step) -> drop/output",
            "dense(drop/output, block/d/kernel, block/d/bias) -> block@2/d/output",
            "batch_norm(block@2/d/output, block/n/gamma, block/n/beta) -> block@2/n/output, block@2/n/mean, "
            "block@2/n/variance",
            "add(block@2/n/output, drop/output) -> block@2/output",
            "dropout(block@2/output, samples, step) -> drop@2/output",
            "concatenate(block@2/output, drop@2/output, block/output) -> concatenate/output",
            "dense(concatenate/output, dense/kernel, dense/bias) -> dense/output"});
  CHECK(parameters(model) == 4 * 4 + 4 + 4 + 4 + 12 * 3 + 3);
  std::int64_t of_lines = 0;
  for (const auto& line : model.layers) of_lines += line.parameters;
  CHECK(of_lines == parameters(model));
  REQUIRE(model.graph.statistics.size() == 4);  // two uses of two running statistics
  CHECK(model.graph.statistics[0].moving == model.graph.statistics[2].moving);
  CHECK(model.graph.statistics[0].batch_value != model.graph.statistics[2].batch_value);
  // Each use of a dropout layer draws its own mask.
  CHECK(model.graph.ops[3].def->attributes() != model.graph.ops[7].def->attributes());
  CHECK(build(twins, {4}, false).graph.statistics.size() == 2);

  const BuiltModel last = build(
      "outputs: [a, b]\nlayers: [{dense: {name: a, units: 4}}, {dense: {name: a, units: 4}}, "
      "{dense: {name: b, units: 2}}]",
      {4});
  CHECK(last.graph.tensor(last.graph.outputs[0]).name == "a@2/output");
}

}  // namespace trainctl::testing::expansion_test
