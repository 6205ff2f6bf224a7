// Tests shapes, parameters and errors of depthwise, separable, transposed and one-dimensional convolutions, pooling
// over sequences, enlarging and cropping, with values computed by hand or by Keras' formulas.
#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/padding.h"
#include "test/catch.h"
#include "test/core/layers/one_layer.h"

namespace trainctl::testing::image_layers_test {

using namespace one_layer;
TEST_CASE("depthwise_conv2d has depth_multiplier filters for each channel") {
  const std::string layer =
      "depthwise_conv2d: {name: d, kernel_size: [3, 5], strides: 2, padding: same, depth_multiplier: 4}";
  CHECK(output(layer, {9, 12, 6}) == Shape{5, 6, 24});
  CHECK(parameters_of(layer, {9, 12, 6}) == Lines{"d/depthwise_kernel 3x5x1x24", "d/bias 24"});
  CHECK(line(layer, {9, 12, 6}).parameters == 3 * 5 * 6 * 4 + 24);
  CHECK(line(layer, {9, 12, 6}).flops == 2.0 * (5 * 6 * 24) * (3 * 5));
  CHECK(ops(layer, {9, 12, 6}) == Lines{"conv2d 3x5 strides=2x2 padding=1,1,1,2 groups=6"});
  CHECK(ops("depthwise_conv2d: {kernel_size: 3, use_bias: false, activation: relu}", {9, 9, 1}) ==
        Lines{"conv2d 3x3", "activation relu"});
  const BuiltModel model = build(network(layer), {9, 12, 6});
  // Keras counts the connections of (height, width, in, depth_multiplier).
  CHECK(model.graph.parameters[0].initializer.fan_in == 3 * 5 * 6);
  CHECK(model.graph.parameters[0].initializer.fan_out == 3 * 5 * 4);
  CHECK(model.graph.parameters[0].decay);
  CHECK_FALSE(model.graph.parameters[1].decay);
}

TEST_CASE("separable_conv2d is a depthwise and a pointwise convolution") {
  const std::string layer =
      "separable_conv2d: {name: s, filters: 10, kernel_size: 3, depth_multiplier: 2, dilation_rate: 2, activation: "
      "tanh}";
  CHECK(output(layer, {9, 8, 5}) == Shape{5, 4, 10});
  CHECK(parameters_of(layer, {9, 8, 5}) ==
        Lines{"s/depthwise_kernel 3x3x1x10", "s/pointwise_kernel 1x1x10x10", "s/bias 10"});
  CHECK(line(layer, {9, 8, 5}).parameters == 3 * 3 * 5 * 2 + 10 * 10 + 10);
  CHECK(line("separable_conv2d: {filters: 7, kernel_size: 3, depth_multiplier: 2}", {9, 8, 5}).flops ==
        2.0 * (7 * 6 * 10) * 9 + 2.0 * (7 * 6 * 7) * 10);
  CHECK(ops(layer, {9, 8, 5}) == Lines{"conv2d 3x3 dilation=2x2 groups=5", "conv2d 1x1", "activation tanh"});
}

TEST_CASE("depthwise_conv1d and separable_conv1d are those of images one pixel high") {
  const std::string layer =
      "depthwise_conv1d: {name: d, kernel_size: 3, strides: 2, padding: same, depth_multiplier: 4, activation: relu}";
  CHECK(output(layer, {9, 6}) == Shape{5, 24});
  CHECK(parameters_of(layer, {9, 6}) == Lines{"d/depthwise_kernel 3x1x24", "d/bias 24"});
  CHECK(line(layer, {9, 6}).flops == 2.0 * (5 * 24) * 3 + 5 * 24);
  CHECK(ops(layer, {9, 6}) == Lines{"reshape 2x1x9x6", "conv2d 1x3 strides=1x2 padding=0,1,0,1 groups=6",
                                    "activation relu", "reshape 2x5x24"});
  const BuiltModel model = build(network(layer), {9, 6});
  CHECK(model.graph.parameters[0].initializer.fan_in == 3 * 6);  // of Keras' (length, in, depth_multiplier)
  CHECK(model.graph.parameters[0].initializer.fan_out == 3 * 4);
  CHECK(ops("depthwise_conv1d: {kernel_size: 3, dilation_rate: 2, padding: causal}", {9, 2}) ==
        Lines{"reshape 2x1x9x2", "conv2d 1x3 dilation=1x2 padding=0,4,0,0 groups=2", "reshape 2x9x2"});

  const std::string separable = "separable_conv1d: {name: s, filters: 10, kernel_size: 3, depth_multiplier: 2}";
  CHECK(output(separable, {9, 5}) == Shape{7, 10});
  CHECK(parameters_of(separable, {9, 5}) ==
        Lines{"s/depthwise_kernel 3x1x10", "s/pointwise_kernel 1x10x10", "s/bias 10"});
  CHECK(line(separable, {9, 5}).parameters == 3 * 5 * 2 + 10 * 10 + 10);
  CHECK(ops(separable, {9, 5}) == Lines{"reshape 2x1x9x5", "conv2d 1x3 groups=5", "conv2d 1x1", "reshape 2x7x10"});
}

TEST_CASE("conv1d has Keras' kernel, and its causal outputs do not depend on later steps") {
  CHECK(output("conv1d: {filters: 7, kernel_size: 3}", {20, 4}) == Shape{18, 7});
  CHECK(output("conv1d: {filters: 7, kernel_size: 3, padding: same, strides: 2}", {21, 4}) == Shape{11, 7});
  const std::string causal = "conv1d: {name: c, filters: 6, kernel_size: 3, padding: causal, dilation_rate: 4}";
  CHECK(output(causal, {20, 4}) == Shape{20, 6});
  CHECK(output(causal, {2, 4}) == Shape{2, 6});
  CHECK(ops(causal, {20, 4}) == Lines{"reshape 2x1x20x4", "conv2d 1x3 dilation=1x4 padding=0,8,0,0", "reshape 2x20x6"});
  CHECK(parameters_of(causal, {20, 4}) == Lines{"c/kernel 3x4x6", "c/bias 6"});
  CHECK(line(causal, {20, 4}).parameters == 3 * 4 * 6 + 6);
  CHECK(line(causal, {20, 4}).flops == 2.0 * (20 * 6) * (3 * 4));
  const std::string groups = "conv1d: {name: c, filters: 6, kernel_size: 3, groups: 2, activation: relu}";
  CHECK(parameters_of(groups, {20, 4}) == Lines{"c/kernel 3x2x6", "c/bias 6"});
  // The activation follows the convolution directly, so that it can be fused.
  CHECK(ops(groups, {20, 4}) == Lines{"reshape 2x1x20x4", "conv2d 1x3 groups=2", "activation relu", "reshape 2x18x6"});
  const BuiltModel model = build(network(causal), {20, 4});
  CHECK(model.graph.parameters[0].initializer.fan_in == 3 * 4);
  CHECK(model.graph.parameters[0].initializer.fan_out == 3 * 6);
}

TEST_CASE("conv2d_transpose has Keras' output sizes, which a convolution maps back to the input's sizes") {
  for (const std::int64_t input : {1, 2, 5, 8}) {
    for (const std::int64_t kernel : {1, 2, 3, 5}) {
      for (const std::int64_t stride : {1, 2, 3}) {
        for (const std::int64_t dilation : {1, 2}) {
          const std::int64_t span = kernel + (kernel - 1) * (dilation - 1);
          const std::string layer = format(
              "conv2d_transpose: {{filters: 3, kernel_size: {}, strides: {}, dilation_rate: {}, padding: ", kernel,
              stride, dilation);
          CAPTURE(layer, input);
          const std::int64_t valid = input * stride + std::max<std::int64_t>(span - stride, 0);
          CHECK(output(layer + "valid}", {input, input, 2}) == Shape{valid, valid, 3});
          CHECK(output(layer + "same}", {input, input, 2}) == Shape{input * stride, input * stride, 3});
          for (const char* padding : {"valid}", "same}"}) {
            const BuiltModel model = build(network(layer + padding), {input, input, 2});
            const auto& op = model.graph.ops[0].as<Conv2dGradInput>();
            CHECK(op.window.output(0, op.input[1]) == input);
            CHECK(op.window.output(1, op.input[2]) == input);
          }
        }
      }
    }
  }
}

TEST_CASE("conv2d_transpose has the kernel (height, width, filters, in)") {
  const std::string layer =
      "conv2d_transpose: {name: t, filters: 8, kernel_size: [3, 4], strides: 2, padding: same, activation: relu}";
  CHECK(parameters_of(layer, {5, 6, 12}) == Lines{"t/kernel 3x4x8x12", "t/bias 8"});
  CHECK(line(layer, {5, 6, 12}).parameters == 3 * 4 * 8 * 12 + 8);
  CHECK(ops(layer, {5, 6, 12}) ==
        Lines{"conv2d_grad_input 3x4 strides=2x2 padding=0,1,1,1", "add_bias", "activation relu"});
  // Each value of the input is multiplied by each element of its channel's kernel; bias and activation follow.
  CHECK(line(layer, {5, 6, 12}).flops == 2.0 * (5 * 6 * 12) * (3 * 4 * 8) + 2 * (10 * 12 * 8));
  CHECK(ops("conv2d_transpose: {filters: 2, kernel_size: 1, use_bias: false}", {4, 4, 3}) ==
        Lines{"conv2d_grad_input 1x1"});
}

TEST_CASE("pooling over sequences is pooling over images one pixel high") {
  CHECK(output("max_pooling1d", {9, 4}) == Shape{4, 4});
  CHECK(output("max_pooling1d: {pool_size: 3, strides: 1}", {9, 4}) == Shape{7, 4});
  CHECK(output("average_pooling1d: {pool_size: 3, padding: same}", {10, 4}) == Shape{4, 4});
  CHECK(output("global_max_pooling1d", {9, 4}) == Shape{4});
  CHECK(output("global_average_pooling1d", {9, 4}) == Shape{4});
}

TEST_CASE("upsampling1d repeats steps, zero_padding1d and cropping1d change both ends") {
  CHECK(output("upsampling1d", {7, 3}) == Shape{14, 3});
  CHECK(output("upsampling1d: 5", {7, 3}) == Shape{35, 3});
  CHECK(output("zero_padding1d", {7, 3}) == Shape{9, 3});
  CHECK(output("zero_padding1d: [0, 4]", {7, 3}) == Shape{11, 3});
  CHECK(output("cropping1d", {7, 3}) == Shape{5, 3});
  CHECK(output("cropping1d: 3", {7, 3}) == Shape{1, 3});
  CHECK(ops("upsampling1d: 3", {7, 4}) == Lines{"reshape 2x1x7x4", "upsample2d nearest 1x3", "reshape 2x21x4"});
  const BuiltModel padded = build(network("zero_padding1d: {padding: [2, 4]}"), {7, 3});
  CHECK(padded.graph.ops[1].as<Pad2d>().borders.before == std::array<std::int64_t, 2>{0, 2});
  CHECK(padded.graph.ops[1].as<Pad2d>().borders.after == std::array<std::int64_t, 2>{0, 4});
  const BuiltModel cropped = build(network("cropping1d: {cropping: [2, 4]}"), {7, 3});
  CHECK(cropped.graph.ops[1].as<Crop2d>().borders.before == std::array<std::int64_t, 2>{0, 2});
  CHECK(cropped.graph.ops[1].as<Crop2d>().borders.after == std::array<std::int64_t, 2>{0, 4});
}

TEST_CASE("conv1d_transpose has the kernel (length, filters, in) and Keras' output lengths") {
  const std::string layer = "conv1d_transpose: {name: t, filters: 8, kernel_size: 4, activation: relu, ";
  CHECK(parameters_of(layer + "strides: 2}", {6, 12}) == Lines{"t/kernel 4x8x12", "t/bias 8"});
  CHECK(output(layer + "strides: 3, padding: same}", {6, 12}) == Shape{18, 8});
  CHECK(output(layer + "strides: 3}", {6, 12}) == Shape{19, 8});
  CHECK(output(layer + "dilation_rate: 2}", {6, 12}) == Shape{12, 8});
  CHECK(ops(layer + "strides: 2, padding: same}", {6, 12}) == Lines{"reshape 2x1x6x12",
                                                                    "conv2d_grad_input 1x4 strides=1x2 padding=0,1,0,1",
                                                                    "add_bias", "activation relu", "reshape 2x12x8"});
}

TEST_CASE("global_max_pooling2d records its winners in training only") {
  CHECK(output("global_max_pooling2d", {30, 20, 4}) == Shape{4});
  CHECK(ops("global_max_pooling2d", {30, 20, 4}) == Lines{"global_max_pool2d training"});
  CHECK(ops("global_max_pooling2d", {30, 20, 4}, false) == Lines{"global_max_pool2d"});
}

TEST_CASE("upsampling2d multiplies sizes, and cropping2d removes borders") {
  CHECK(output("upsampling2d", {6, 7, 3}) == Shape{12, 14, 3});
  CHECK(output("upsampling2d: 3", {6, 7, 3}) == Shape{18, 21, 3});
  CHECK(output("upsampling2d: {size: [1, 4], interpolation: bilinear}", {6, 7, 3}) == Shape{6, 28, 3});
  CHECK(ops("upsampling2d: {interpolation: bilinear}", {6, 7, 3}) == Lines{"upsample2d bilinear 2x2"});
  CHECK(line("upsampling2d", {6, 7, 3}).flops == 0);
  CHECK(output("cropping2d", {6, 7, 3}) == Shape{6, 7, 3});
  CHECK(output("cropping2d: 2", {6, 7, 3}) == Shape{2, 3, 3});
  CHECK(output("cropping2d: {cropping: [1, 2]}", {6, 7, 3}) == Shape{4, 3, 3});
  CHECK(output("cropping2d: {cropping: [[1, 0], [2, 3]]}", {6, 7, 3}) == Shape{5, 2, 3});
}

TEST_CASE("an input or option that does not fit these layers leads to one error") {
  const std::string from = " (from the input)";
  const auto at = [&](const std::string& kind, const std::string& text) {
    return "m.yaml:2:5: " + kind + " '" + kind + "': " + text + from;
  };
  for (const std::string layer :
       {"depthwise_conv2d: {kernel_size: 3}", "separable_conv2d: {filters: 2, kernel_size: 3}",
        "conv2d_transpose: {filters: 2, kernel_size: 3}", "upsampling2d", "cropping2d", "global_max_pooling2d"}) {
    CHECK(error(layer, {8, 3}) ==
          at(layer.substr(0, layer.find(':')), "input 8x3 is not an image (height, width, channels)"));
  }
  for (const std::string layer :
       {"conv1d: {filters: 2, kernel_size: 3}", "max_pooling1d", "average_pooling1d", "global_max_pooling1d",
        "global_average_pooling1d", "upsampling1d", "zero_padding1d", "cropping1d",
        "conv1d_transpose: {filters: 2, kernel_size: 3}", "depthwise_conv1d: {kernel_size: 3}",
        "separable_conv1d: {filters: 2, kernel_size: 3}"}) {
    CHECK(error(layer, {8, 8, 3}) ==
          at(layer.substr(0, layer.find(':')), "input 8x8x3 is not a sequence (steps, channels)"));
  }
  CHECK(error("depthwise_conv2d: {kernel_size: 5}", {4, 8, 3}) == at("depthwise_conv2d", "kernel 5 exceeds input 4"));
  CHECK(error("depthwise_conv2d: {kernel_size: 1, depth_multiplier: 2000000000}", {4, 8, 3}) ==
        at("depthwise_conv2d", "3 input channels times depth_multiplier 2000000000 are more than 2147483647 channels"));
  CHECK(error("conv1d: {filters: 2, kernel_size: 3, dilation_rate: 4}", {8, 3}) ==
        at("conv1d", "kernel 9 (3 dilated by 4) exceeds input 8"));
  CHECK(error("conv1d: {filters: 2, kernel_size: 3, groups: 2}", {8, 3}) ==
        at("conv1d", "groups 2 does not divide 3 input channels"));
  CHECK(error("max_pooling1d: {pool_size: 300}", {400, 3}) ==
        at("max_pooling1d", "a window of 1x300 has more than 256 elements"));
  CHECK(error("average_pooling1d: {pool_size: 9}", {8, 3}) == at("average_pooling1d", "window 9 exceeds input 8"));
  CHECK(error("cropping2d: {cropping: [[3, 5], [0, 0]]}", {8, 9, 3}) ==
        at("cropping2d", "cropping 3 and 5 removes all of the 8 rows"));
  CHECK(error("cropping2d: {cropping: [1, 9]}", {8, 9, 3}) ==
        at("cropping2d", "cropping 9 and 9 removes all of the 9 columns"));
  CHECK(error("cropping1d: [3, 5]", {8, 3}) == at("cropping1d", "cropping 3 and 5 removes all of the 8 steps"));
  CHECK(error("upsampling1d: 4000000", {8, 3}) ==
        at("upsampling1d", "input 8 enlarged by 4000000 is more than 16777216 steps"));
  CHECK(error("conv1d_transpose: {filters: 1, kernel_size: 1, strides: 4000000}", {8, 3}) ==
        at("conv1d_transpose", "output 32000000 is more than 16777216 pixels"));
  CHECK(error("upsampling2d: {size: [1, 4000000]}", {8, 9, 3}) ==
        at("upsampling2d", "input 9 enlarged by 4000000 is more than 16777216 pixels"));
  CHECK(error("conv2d_transpose: {filters: 1, kernel_size: 1, strides: [4000000, 1]}", {8, 9, 3}) ==
        at("conv2d_transpose", "output 32000000 is more than 16777216 pixels"));
  CHECK(error("conv1d: {filters: 2, kernel_size: 3, padding: casual}", {8, 3}).find("did you mean 'causal'?") !=
        std::string::npos);
}

TEST_CASE("sizes of these layers that overflow are errors of the layer") {
  for (const char* size : {"65537", "16777217", "2147483647", "4611686018427387904", "9223372036854775807"}) {
    const auto text = [&](std::string pattern) { return pattern.replace(pattern.find("HUGE"), 4, size); };
    for (const char* pattern :
         {"depthwise_conv2d: {kernel_size: HUGE, padding: same}", "depthwise_conv2d: {kernel_size: 1, strides: HUGE}",
          "depthwise_conv2d: {kernel_size: 1, depth_multiplier: HUGE}",
          "separable_conv2d: {filters: HUGE, kernel_size: 1}", "conv2d_transpose: {filters: 2, kernel_size: HUGE}",
          "conv2d_transpose: {filters: 2, kernel_size: 2, strides: HUGE}",
          "conv2d_transpose: {filters: 2, kernel_size: 2, padding: same, strides: HUGE}",
          "conv2d_transpose: {filters: 2, kernel_size: 3, dilation_rate: HUGE}",
          "conv2d_transpose: {filters: HUGE, kernel_size: 3}", "upsampling2d: HUGE", "cropping2d: HUGE"}) {
      CAPTURE(pattern, size);
      const std::string found = error(text(pattern), {8, 8, 4});
      CHECK((found.empty() || found.starts_with("m.yaml:")));
    }
    for (const char* pattern :
         {"depthwise_conv1d: {kernel_size: HUGE, padding: causal}",
          "depthwise_conv1d: {kernel_size: 1, depth_multiplier: HUGE}",
          "separable_conv1d: {filters: HUGE, kernel_size: 1, strides: HUGE}",
          "conv1d: {filters: 2, kernel_size: HUGE, padding: causal}",
          "conv1d: {filters: 2, kernel_size: 3, padding: causal, dilation_rate: HUGE}",
          "conv1d: {filters: 2, kernel_size: 3, strides: HUGE}", "conv1d: {filters: HUGE, kernel_size: 3}",
          "max_pooling1d: {pool_size: HUGE, padding: same}", "average_pooling1d: {strides: HUGE}", "upsampling1d: HUGE",
          "cropping1d: HUGE", "conv1d_transpose: {filters: 2, kernel_size: HUGE}",
          "conv1d_transpose: {filters: 2, kernel_size: 2, strides: HUGE}",
          "conv1d_transpose: {filters: HUGE, kernel_size: 3}"}) {
      CAPTURE(pattern, size);
      const std::string found = error(text(pattern), {8, 4});
      CHECK((found.empty() || found.starts_with("m.yaml:")));
    }
  }
}

}  // namespace trainctl::testing::image_layers_test
