// Tests the translation of networks to ONNX: their nodes, the layout of the weights, and ops that are refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/exec/interfaces/snapshot.h"
#include "io/datasets/arrays/float32.h"
#include "io/onnx/image_steps.h"
#include "io/onnx/network.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::onnx_network_test {
namespace {

// A network for evaluation with random weights.
struct Network {
  Graph graph;
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> weights;

  Network(const std::string& layers, const Shape& sample, bool training = false)
      : graph(build("layers: " + layers, sample, training).graph) {
    std::mt19937 random(5);
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.role != Role::parameter && tensor.role != Role::statistic) continue;
      std::vector<float>& own = values.emplace_back(static_cast<std::size_t>(tensor.type.shape.count()));
      for (float& value : own) value = std::normal_distribution<float>()(random);
      weights.push_back({tensor.name, tensor.type.shape, {own.data(), DType::float32, std::ssize(own)}});
    }
  }
  OnnxModel model(DType dtype = DType::float32) const { return onnx_model(graph, weights, {"output"}, dtype); }
};

std::string types(const OnnxModel& model) {
  std::string text;
  for (const OnnxNode& node : model.nodes) text += (text.empty() ? "" : " ") + node.type;
  return text;
}

const OnnxConstant& constant(const OnnxModel& model, const std::string& name) {
  const auto found = std::find_if(model.constants.begin(), model.constants.end(),
                                  [&](const OnnxConstant& constant) { return constant.name == name; });
  REQUIRE(found != model.constants.end());
  return *found;
}

template <class T>
T element(const OnnxConstant& constant, std::size_t index) {
  T value;
  std::memcpy(&value, constant.bytes.data() + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("images are transposed once, and back before a layer that reads them row by row") {
  const Network network(
      "[{conv2d: {filters: 4, kernel_size: 3, activation: relu}}, batch_normalization, {max_pooling2d: {pool_size: "
      "2}}, "
      "{conv2d: {filters: 4, kernel_size: 1}}, {residual: {layers: [{conv2d: {filters: 4, kernel_size: 1}}]}}, "
      "flatten, {dense: 3}]",
      {8, 8, 3});
  const OnnxModel model = network.model();
  CHECK(types(model) == "Transpose Conv Relu BatchNormalization MaxPool Conv Conv Add Transpose Reshape Gemm Identity");
  REQUIRE(model.inputs.size() == 1);
  CHECK(model.inputs[0].name == "input");
  CHECK(model.inputs[0].type.shape.without_front() == Shape{8, 8, 3});
  REQUIRE(model.outputs.size() == 1);
  CHECK(model.outputs[0].name == "output");
  CHECK(model.nodes.back().outputs == std::vector<std::string>{"output"});
}

TEST_CASE("a kernel keeps its name and is stored with outputs and inputs first") {
  const Network network("[{conv2d: {name: c, filters: 4, kernel_size: [2, 3]}}, flatten, {dense: 3}]", {8, 8, 5});
  const OnnxModel model = network.model();
  const OnnxConstant& kernel = constant(model, "c/kernel");
  CHECK(kernel.type.shape == Shape{4, 5, 2, 3});
  for (std::int64_t o = 0; o < 4; ++o) {
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t y = 0; y < 2; ++y) {
        for (std::int64_t x = 0; x < 3; ++x) {
          const float stored = element<float>(kernel, static_cast<std::size_t>(((o * 5 + i) * 2 + y) * 3 + x));
          REQUIRE(stored == network.values[0][static_cast<std::size_t>(((y * 3 + x) * 5 + i) * 4 + o)]);
        }
      }
    }
  }
}

TEST_CASE("a recurrent layer is one node, without the product of its input, and a layer used twice has one kernel") {
  const Network network(
      "[{lstm: {name: l, units: 4, return_sequences: true}}, {lstm: {name: l, units: 4, return_sequences: true}}, "
      "{gru: 2}]",
      {5, 4});
  const OnnxModel model = network.model();
  CHECK(types(model) ==
        "Transpose LSTM Squeeze Transpose Transpose LSTM Squeeze Transpose Transpose GRU Squeeze Identity");
  CHECK(std::count_if(model.constants.begin(), model.constants.end(), [](const OnnxConstant& c) {
          return c.type.shape == Shape{1, 16, 4};
        }) == 2);  // the kernel and the recurrent kernel
  const OnnxConstant& bias = constant(model, "l/bias");
  REQUIRE(bias.type.shape == Shape{1, 32});
  const std::vector<float>& keras = network.values[2];  // input, forget, candidate, output
  for (std::size_t u = 0; u < 4; ++u) {
    CHECK(element<float>(bias, u) == keras[u]);
    CHECK(element<float>(bias, 4 + u) == keras[12 + u]);
    CHECK(element<float>(bias, 8 + u) == keras[4 + u]);
    CHECK(element<float>(bias, 12 + u) == keras[8 + u]);
    CHECK(element<float>(bias, 16 + u) == 0);
  }
}

TEST_CASE("bfloat16 weights are rounded and cast back, other constants stay float32") {
  const Network network("[{rescaling: 0.1}, {dense: {name: d, units: 3, use_bias: false}}]", {4});
  const OnnxModel model = network.model(DType::bfloat16);
  CHECK(types(model) == "Mul Add Cast Gemm Identity");
  const OnnxConstant& kernel = constant(model, "d/kernel");
  CHECK(kernel.type == TensorType{{4, 3}, DType::bfloat16});
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(element<std::uint16_t>(kernel, i) == to_bfloat16(network.values[0][i]));
  }
}

TEST_CASE("float32 rounds to the nearest bfloat16") {
  CHECK(to_bfloat16(1.0f) == 0x3F80);
  CHECK(to_bfloat16(-1.0f - 0x1p-8f) == 0xBF80);  // halfway: the even one
  CHECK(to_bfloat16(1.0f + 0x3p-8f) == 0x3F82);
  CHECK(to_bfloat16(1.0f + 0x1p-8f + 0x1p-20f) == 0x3F81);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()) == 0x7F80);  // infinity
  CHECK((to_bfloat16(std::nanf("1")) & 0x7FFF) > 0x7F80);
}

TEST_CASE("an op without a counterpart is an error that names its layer") {
  const Network network("[{dense: 3}, {dropout: {name: drop, rate: 0.5}}, {dense: 2}]", {4}, true);
  try {
    network.model();
    FAIL("translated");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(error.location().line == 1);
    CHECK(std::string(error.what()).find("layer 'drop' (dropout) has no counterpart") != std::string::npos);
  }
}

TEST_CASE("crops and resizes come before the network, whose input is then the stored image") {
  OnnxModel model = Network("[{conv2d: {filters: 2, kernel_size: 1}}, flatten]", {4, 5, 3}).model();
  const std::string network = types(model);
  const OnnxValue stored{model.inputs[0].name, {{1, 20, 30, 3}, DType::uint8}, true};
  prepend_image_steps(model, stored, {{{{1, 2}, {3, 0}}}, {{}, 4, 5}});
  CHECK(types(model) == "Slice Cast Transpose Shape Concat Resize Transpose " + network);
  CHECK(model.nodes[0].inputs[0] == stored.name);
  CHECK(model.inputs[0].type.shape == Shape{1, 20, 30, 3});
  CHECK(model.inputs[0].any_size);
  const OnnxConstant& until = constant(model, model.nodes[0].inputs[2]);
  CHECK(element<std::int64_t>(until, 0) == -3);
  CHECK(element<std::int64_t>(until, 1) > 1'000'000);  // to the last pixel
  const std::string image = model.nodes[6].outputs[0];
  const auto reads = [&](const std::string& name) {
    return std::count_if(model.nodes.begin() + 7, model.nodes.end(), [&](const OnnxNode& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end();
    });
  };
  CHECK(reads(image) > 0);
  CHECK(reads(stored.name) == 0);
}

}  // namespace trainctl::testing::onnx_network_test
