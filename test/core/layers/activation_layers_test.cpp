// Tests the layers relu, leaky_relu, elu, softmax and unit_normalization: their ops, masks and errors.
#include "core/graph/ops/elementwise/activations.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::activation_layers_test {
namespace {

std::string network(const std::string& layer) { return "layers:\n  - " + layer + "\n  - flatten\n  - dense: 1"; }

// The kinds of the layer's ops, for samples (4, 3).
std::string ops(const std::string& layer) {
  const BuiltModel model = build(network(layer), {4, 3});
  CHECK(model.layers[0].output == Shape{4, 3});
  std::string kinds;
  for (int i = 0; i < model.layers[0].ops; ++i) {
    kinds += (i > 0 ? " " : "") + std::string(model.graph.ops[static_cast<std::size_t>(i)].def->kind());
  }
  return kinds;
}

// The function of the layer, which is one op.
std::string function(const std::string& layer) {
  CHECK(ops(layer) == "activation");
  return to_string(build(network(layer), {4, 3}).graph.ops[0].as<Activation>().function);
}

}  // namespace

TEST_CASE("layers for activations are the ops of the activations where these have the options") {
  CHECK(function("relu") == "relu");
  CHECK(function("relu: {max_value: 6}") == "relu6");
  CHECK(function("relu: {negative_slope: 0.125}") == "leaky_relu(0.125)");
  CHECK(function("leaky_relu") == "leaky_relu(0.3)");
  CHECK(function("leaky_relu: 0.5") == "leaky_relu(0.5)");
  CHECK(function("elu") == "elu(1)");
  CHECK(function("elu: {alpha: 0.5}") == "elu(0.5)");
  CHECK(ops("softmax") == "softmax");
}

TEST_CASE("relu with a limit or a threshold is one elementwise op") {
  for (const char* layer : {"relu: {max_value: 5}", "relu: {threshold: 0.5}", "relu: {max_value: 6, threshold: 1}",
                            "relu: {max_value: 6, negative_slope: 0.1}"}) {
    CAPTURE(layer);
    CHECK(ops(layer) == "elementwise");
  }
}

TEST_CASE("a loss takes over a softmax layer of the last dimension at the end of the network") {
  const auto count = [](const std::string& layer) {
    return build("layers: [{dense: 3}, " + layer + "]", Shape{4}, true, true).layers[1].ops;
  };
  CHECK(count("softmax") == 0);
}

TEST_CASE("options of these layers outside of Keras' ranges lead to one error") {
  CHECK(errors(network("softmax: 3"), {4, 3}) ==
        "m.yaml:2:5: softmax 'softmax': axis 3 of input 4x3: the axes of a sample are 1 to 2, or -1 for the last (from "
        "the input)");
  CHECK(errors(network("softmax: 2"), {4, 3}).find("axis 2 is the last one: write -1") != std::string::npos);
  CHECK(errors(network("softmax: 0"), {4, 3}).find("axis 0 of input 4x3") != std::string::npos);
  for (const char* layer : {"relu: {max_value: -1}", "relu: {negative_slope: -1}", "relu: {threshold: -0.5}",
                            "leaky_relu: -1", "elu: -1"}) {
    CAPTURE(layer);
    CHECK(errors(network(layer), {4, 3}).starts_with("m.yaml:2:"));
  }
}

}  // namespace trainctl::testing::activation_layers_test
