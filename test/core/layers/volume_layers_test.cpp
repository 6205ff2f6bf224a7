// Tests shapes, ops, parameters and errors of layers over volumes, with values computed by hand or by Keras' formulas.
#include "core/graph/ops/images/convolution.h"
#include "test/catch.h"
#include "test/core/layers/one_layer.h"

namespace trainctl::testing::volume_layers_test {

using namespace one_layer;

TEST_CASE("conv3d has the kernel (depth, height, width, in / groups, filters)") {
  const std::string layer =
      "conv3d: {name: c, filters: 6, kernel_size: [2, 3, 4], strides: [1, 2, 3], padding: same, groups: 2, activation: "
      "relu}";
  CHECK(output(layer, {5, 7, 8, 4}) == Shape{5, 4, 3, 6});
  CHECK(parameters_of(layer, {5, 7, 8, 4}) == Lines{"c/kernel 2x3x4x2x6", "c/bias 6"});
  CHECK(line(layer, {5, 7, 8, 4}).parameters == 2 * 3 * 4 * 2 * 6 + 6);
  CHECK(line(layer, {5, 7, 8, 4}).flops == 2.0 * (5 * 4 * 3 * 6) * (2 * 3 * 4 * 2) + 5 * 4 * 3 * 6);
  CHECK(ops(layer, {5, 7, 8, 4}) ==
        Lines{"conv3d 2x3x4 strides=1x2x3 padding=0,1,1,1,1,1 groups=2", "activation relu"});
  const BuiltModel model = build(network(layer), {5, 7, 8, 4});
  CHECK(model.graph.parameters[0].initializer.fan_in == 2 * 3 * 4 * 2);
  CHECK(model.graph.parameters[0].initializer.fan_out == 2 * 3 * 4 * 6);
  // The tubelets of a video vision transformer do not overlap.
  CHECK(output("conv3d: {filters: 32, kernel_size: 4, strides: 4}", {16, 28, 28, 1}) == Shape{4, 7, 7, 32});
  CHECK(ops("conv3d: {filters: 3, kernel_size: 3, padding: [1, 0, 2], dilation_rate: [1, 2, 1], use_bias: false}",
            {4, 9, 6, 2}) == Lines{"conv3d 3x3x3 dilation=1x2x1 padding=1,0,2,1,0,2"});
}

TEST_CASE("conv3d_transpose has Keras' output sizes, which a convolution maps back to the input's sizes") {
  const std::string layer =
      "conv3d_transpose: {name: t, filters: 5, kernel_size: [1, 2, 3], strides: [2, 3, 1], dilation_rate: [1, 1, 2], "
      "padding: ";
  CHECK(output(layer + "same}", {3, 4, 5, 2}) == Shape{6, 12, 5, 5});
  CHECK(output(layer + "valid}", {3, 4, 5, 2}) == Shape{6, 12, 9, 5});
  CHECK(parameters_of(layer + "same}", {3, 4, 5, 2}) == Lines{"t/kernel 1x2x3x5x2", "t/bias 5"});
  for (const char* padding : {"same}", "valid}"}) {
    const BuiltModel model = build(network(layer + padding), {3, 4, 5, 2});
    const auto& op = model.graph.ops[0].as<Conv3dGradInput>();
    for (int axis = 0; axis < 3; ++axis) CHECK(op.window.output(axis, op.input[axis + 1]) == 3 + axis);
  }
}

TEST_CASE("pooling over volumes is pooling over slices, and along the depth") {
  CHECK(output("max_pooling3d", {9, 8, 7, 4}) == Shape{4, 4, 3, 4});
  CHECK(output("average_pooling3d: {pool_size: [3, 2, 1], strides: [1, 3, 2], padding: same}", {9, 8, 7, 4}) ==
        Shape{9, 3, 4, 4});
  CHECK(ops("max_pooling3d: {pool_size: [3, 2, 4], strides: [1, 2, 3]}", {9, 8, 7, 4}) ==
        Lines{"reshape 18x8x7x4", "pool2d max 2x4 strides=2x3 training", "reshape 2x9x8x4", "pool2d max 3x1 training",
              "reshape 2x7x4x2x4"});
  CHECK(ops("average_pooling3d: {pool_size: [1, 2, 2]}", {9, 8, 7, 4}) ==
        Lines{"reshape 18x8x7x4", "pool2d average 2x2 strides=2x2 training", "reshape 2x9x4x3x4"});
  CHECK(ops("average_pooling3d: {pool_size: [2, 1, 1]}", {9, 8, 7, 4}) ==
        Lines{"reshape 2x9x56x4", "pool2d average 2x1 strides=2x1 training", "reshape 2x4x8x7x4"});
  CHECK(ops("max_pooling3d: {pool_size: 3, padding: [1, 0, 1]}", {9, 9, 9, 4}, false) ==
        Lines{"reshape 18x9x9x4", "pool2d max 3x3 strides=3x3 padding=0,1,0,1", "reshape 2x9x9x4",
              "pool2d max 3x1 strides=3x1 padding=1,0,1,0", "reshape 2x3x3x3x4"});
  CHECK(ops("max_pooling3d: {pool_size: 1}", {9, 8, 7, 4}).empty());
  CHECK(output("global_max_pooling3d", {9, 8, 7, 4}) == Shape{4});
  CHECK(ops("global_average_pooling3d", {9, 8, 7, 4}) == Lines{"reshape 2x72x7x4", "global_average_pool2d"});
}

TEST_CASE("upsampling3d, zero_padding3d and cropping3d change the depth, the height and the width") {
  CHECK(output("upsampling3d", {3, 4, 5, 2}) == Shape{6, 8, 10, 2});
  CHECK(output("upsampling3d: [1, 2, 3]", {3, 4, 5, 2}) == Shape{3, 8, 15, 2});
  CHECK(ops("upsampling3d: [3, 1, 1]", {3, 4, 5, 2}) ==
        Lines{"reshape 2x3x20x2", "upsample2d nearest 3x1", "reshape 2x9x4x5x2"});
  CHECK(output("zero_padding3d", {3, 4, 5, 2}) == Shape{5, 6, 7, 2});
  CHECK(output("zero_padding3d: [0, 1, 3]", {3, 4, 5, 2}) == Shape{3, 6, 11, 2});
  CHECK(ops("zero_padding3d: [[1, 2], [0, 3], [4, 0]]", {3, 4, 5, 2}) ==
        Lines{"reshape 6x4x5x2", "pad2d 0,4,3,0", "reshape 2x3x63x2", "pad2d 1,0,2,0", "reshape 2x6x7x9x2"});
  CHECK(output("cropping3d", {3, 4, 5, 2}) == Shape{1, 2, 3, 2});
  CHECK(ops("cropping3d: [[1, 0], [0, 0], [0, 0]]", {3, 4, 5, 2}) ==
        Lines{"reshape 2x3x20x2", "crop2d 1,0,0,0", "reshape 2x2x4x5x2"});
}

TEST_CASE("an input or option that does not fit layers over volumes leads to one error") {
  const auto at = [&](const std::string& kind, const std::string& text) {
    return "m.yaml:2:5: " + kind + " '" + kind + "': " + text + " (from the input)";
  };
  for (const std::string layer :
       {"conv3d: {filters: 2, kernel_size: 3}", "conv3d_transpose: {filters: 2, kernel_size: 3}", "max_pooling3d",
        "average_pooling3d", "global_max_pooling3d", "global_average_pooling3d", "upsampling3d", "zero_padding3d",
        "cropping3d"}) {
    CHECK(error(layer, {8, 8, 3}) ==
          at(layer.substr(0, layer.find(':')), "input 8x8x3 is not a volume (depth, height, width, channels)"));
  }
  CHECK(error("conv2d: {filters: 2, kernel_size: 3}", {4, 8, 8, 3}) ==
        at("conv2d", "input 4x8x8x3 is not an image (height, width, channels)"));
  CHECK(error("conv3d: {filters: 2, kernel_size: 5}", {4, 8, 8, 3}) == at("conv3d", "kernel 5 exceeds input 4"));
  CHECK(error("conv3d: {filters: 2, kernel_size: 1, groups: 2}", {4, 8, 8, 3}) ==
        at("conv3d", "groups 2 does not divide 3 input channels"));
  CHECK(error("max_pooling3d: {pool_size: [5, 2, 2]}", {4, 8, 8, 3}) ==
        at("max_pooling3d", "window 5 exceeds input 4"));
  CHECK(error("cropping3d: [[0, 0], [0, 0], [4, 4]]", {4, 8, 8, 3}) ==
        at("cropping3d", "cropping 4 and 4 removes all of the 8 columns"));
  CHECK(error("upsampling3d: [4000000, 1, 1]", {8, 8, 8, 3}) ==
        at("upsampling3d", "input 8 enlarged by 4000000 is more than 16777216 pixels"));
  CHECK(error("conv3d_transpose: {filters: 1, kernel_size: 1, strides: [4000000, 1, 1]}", {8, 8, 8, 3}) ==
        at("conv3d_transpose", "output 32000000 is more than 16777216 pixels"));
}

TEST_CASE("sizes of layers over volumes that overflow are errors of the layer") {
  for (const char* size : {"65537", "16777217", "2147483647", "4611686018427387904", "9223372036854775807"}) {
    for (const char* pattern :
         {"conv3d: {filters: 2, kernel_size: HUGE, padding: same}",
          "conv3d: {filters: 2, kernel_size: 1, strides: HUGE}", "conv3d: {filters: 2, kernel_size: 3, padding: HUGE}",
          "conv3d: {filters: HUGE, kernel_size: 1}",
          "conv3d: {filters: 2, kernel_size: 3, dilation_rate: HUGE, padding: same}",
          "conv3d_transpose: {filters: 2, kernel_size: HUGE}",
          "conv3d_transpose: {filters: 2, kernel_size: 2, strides: HUGE}", "max_pooling3d: {pool_size: HUGE}",
          "max_pooling3d: {pool_size: HUGE, padding: same}", "average_pooling3d: {strides: HUGE}",
          "average_pooling3d: {padding: HUGE}", "upsampling3d: HUGE", "zero_padding3d: HUGE", "cropping3d: HUGE"}) {
      CAPTURE(pattern, size);
      std::string layer = pattern;
      layer.replace(layer.find("HUGE"), 4, size);
      const std::string found = error(layer, {8, 8, 8, 4});
      CHECK((found.empty() || found.starts_with("m.yaml:")));
    }
  }
}

}  // namespace trainctl::testing::volume_layers_test
