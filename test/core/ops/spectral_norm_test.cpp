// Compares the weights and losses of networks with spectral normalization after steps of SGD with Keras' values
// (test/golden/keras_spectral_norm.py), and tests steps that are skipped.
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/core/ops/network_steps.h"

namespace trainctl::test::spectral_norm_steps_test {
namespace {

const std::map<std::string, std::string> networks{
    {"dense",
     "layers: [{spectral_normalization: {name: a, layers: [{dense: {units: 4, activation: tanh}}]}}, "
     "{spectral_normalization: {name: b, power_iterations: 3, layers: [{dense: 3}]}}]"},
    {"convolutions",
     "layers: [{spectral_normalization: {name: a, layers: [{conv2d: {filters: 3, kernel_size: [3, 2], activation: "
     "tanh, "
     "use_bias: false}}]}}, {spectral_normalization: {name: b, power_iterations: 2, layers: [{conv2d_transpose: "
     "{filters: 4, kernel_size: 2, strides: 2}}]}}, global_average_pooling2d, {dense: {name: c, units: 3}}]"},
    {"embedding",
     "layers: [{spectral_normalization: {name: a, layers: [{embedding: {input_dim: 6, output_dim: 5}}]}}, flatten, "
     "{dense: {name: b, units: 3}}]"}};

}  // namespace

TEST_CASE("networks with spectral normalization make Keras' steps") {
  const Golden golden("keras_spectral_norm.safetensors");
  for (const auto& [name, network] : networks) {
    for (const int micro_batches : {1, 2}) check_steps(golden, name, network, micro_batches);
  }
}

TEST_CASE("a step that is not finite does not change kernels with spectral normalization and their vectors") {
  const Golden golden("keras_spectral_norm.safetensors");
  for (const char* name : {"dense", "convolutions"}) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(name, micro_batches);
      const Value losses = golden.at(format("{}/losses", name));
      NetworkSteps steps(golden, name, networks.at(name), micro_batches);
      CHECK(steps.loss(0) == Approx(losses.values[0]).epsilon(1e-5));
      const auto before = steps.weights();
      const double evaluated = steps.loss({});
      const float value = std::exchange(steps.inputs[1], std::numeric_limits<float>::quiet_NaN());
      CHECK(std::isnan(steps.loss(1)));
      CHECK(steps.weights() == before);
      steps.inputs[1] = value;
      CHECK(steps.loss({}) == evaluated);
      CHECK(steps.loss(1) == Approx(losses.values[1]).epsilon(1e-5));
      CHECK(steps.weights().at("a/vector_u") != before.at("a/vector_u"));
    }
  }
}

}  // namespace trainctl::test::spectral_norm_steps_test
