// Compares losses, metrics and gradients of networks with layers over volumes and rows, and with unit_normalization,
// with Keras' values (test/golden/keras_volumes.py).
#include "test/catch.h"
#include "test/core/ops/keras_case.h"

namespace trainctl::test::keras_volumes_test {

TEST_CASE("networks over volumes and rows have Keras' losses and gradients") {
  const std::string d = "{dense: {name: d, units: 3}}";
  const KerasCase cases[] = {
      {"padding",
       "{conv3d: {name: a, filters: 3, kernel_size: 2, activation: tanh}}, {zero_padding3d: {padding: [[0, 2], [1, 0], "
       "[2, 1]]}}, {conv3d: {name: b, filters: 3, kernel_size: [2, 3, 2]}}, {cropping3d: {cropping: [[1, 0], [0, 1], "
       "[1, 1]]}}, {zero_padding3d: 1}, flatten, " +
           d},
      {"upsampling",
       "{conv3d: {name: a, filters: 3, kernel_size: 2}}, {upsampling3d: {size: [2, 3, 1]}}, {conv3d: {name: b, "
       "filters: "
       "4, kernel_size: [2, 3, 2], strides: [1, 2, 1]}}, {upsampling3d: 2}, global_max_pooling3d, " +
           d},
      {"max_pooling",
       "{conv3d: {name: a, filters: 3, kernel_size: 2}}, {max_pooling3d: {pool_size: [1, 2, 3], strides: [1, 1, 2], "
       "padding: same}}, {max_pooling3d: 2}, flatten, " +
           d},
      {"average_pooling",
       "{conv3d: {name: a, filters: 3, kernel_size: 2, activation: tanh}}, {average_pooling3d: {pool_size: [2, 1, "
       "2]}}, "
       "{average_pooling3d: {pool_size: 3, strides: 2, padding: same}}, flatten, " +
           d},
      {"global_pooling",
       "{conv3d_transpose: {name: a, filters: 4, kernel_size: [2, 3, 2], strides: 2, padding: same, activation: "
       "tanh}}, "
       "global_average_pooling3d, {dense: {name: b, units: 4, activation: tanh}}, " +
           d},
      {"rows",
       "{conv1d_transpose: {name: a, filters: 4, kernel_size: 3, strides: 2, activation: tanh}}, {zero_padding1d: "
       "{padding: [1, 2]}}, {conv1d_transpose: {name: b, filters: 3, kernel_size: 4, padding: same, use_bias: false}}, "
       "{upsampling1d: 2}, {cropping1d: {cropping: [3, 2]}}, flatten, " +
           d},
      {"unit_normalization",
       "{dense: {name: a, units: 4}}, unit_normalization, {dense: {name: b, units: 3}}, unit_normalization, flatten, " +
           d},
  };
  const Golden golden("keras_volumes.safetensors");
  for (const KerasCase& which : cases) check_layers(golden, which);
}

}  // namespace trainctl::test::keras_volumes_test
