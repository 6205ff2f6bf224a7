// Compares losses, weights and running statistics of networks with batch normalization after padding masks with Keras'
// values after steps of SGD (test/golden/keras_masked_batch_norm.py).
#include <map>
#include <string>

#include "test/catch.h"
#include "test/core/ops/network_steps.h"

namespace trainctl::test::masked_batch_norm_steps_test {
namespace {

constexpr const char* embedded = "{embedding: {name: e, input_dim: 6, output_dim: 5, mask_zero: true}}, ";
constexpr const char* predictions = ", {dense: {name: d, units: 3}}]";

// In the case "hidden", all tokens are padding.
const std::map<std::string, std::string> networks{
    {"tokens",
     std::string("layers: [") + embedded +
         "{batch_normalization: {name: n1, momentum: 0.9}}, {activation: relu}, {dense: {name: a, units: 6, "
         "activation: "
         "tanh}}, {batch_normalization: {name: n2, momentum: 0.9, center: false, epsilon: 0.1}}, {simple_rnn: {name: "
         "r, units: 4}}" +
         predictions},
    {"flattened",
     std::string("layers: [") + embedded + "{batch_normalization: {name: n, momentum: 0.9}}, flatten" + predictions},
    {"positions", std::string("layers: [") + embedded +
                      "{batch_normalization: {name: n, momentum: 0.9, scale: false}}, {activation: tanh}, "
                      "global_average_pooling2d" +
                      predictions},
    {"hidden", std::string("layers: [") + embedded +
                   "{batch_normalization: {name: n, momentum: 0.9}}, {activation: tanh}, flatten" + predictions},
    {"values",
     std::string("layers: [masking, {dense: {name: a, units: 8}}, {dense: {name: b, units: 8}}, {batch_normalization: "
                 "{name: n, momentum: 0.9}}, {add: {from: [n, a]}}, {activation: relu}") +
         predictions}};

}  // namespace

TEST_CASE("networks with batch normalization after padding masks make Keras' steps") {
  const Golden golden("keras_masked_batch_norm.safetensors");
  for (const auto& [name, network] : networks) check_steps(golden, name, network, 1);
}

}  // namespace trainctl::test::masked_batch_norm_steps_test
