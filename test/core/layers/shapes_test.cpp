// Compares shapes of windowed layers with the number of windows that fit, and `same` with TensorFlow's rule.
#include <random>

#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/window.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::shapes_test {
namespace {

// Returns how many windows of `span` elements fit into [-before, input + after), one every `stride` elements.
std::int64_t windows(std::int64_t input, std::int64_t span, std::int64_t stride, std::int64_t before,
                     std::int64_t after) {
  std::int64_t count = 0;
  for (std::int64_t begin = -before; begin + span <= input + after; begin += stride) ++count;
  return count;
}

Shape output(const std::string& layer, Shape sample) {
  // A model without parameters is refused, so that a dense layer follows.
  const BuiltModel model = build("layers:\n  - " + layer + "\n  - flatten\n  - dense: 1", std::move(sample));
  return model.layers[0].output;
}

Window window_of(const BuiltModel& model) { return model.graph.ops[0].as<Conv2d>().window; }

}  // namespace

TEST_CASE("dense works on the last dimension") {
  CHECK(output("dense: 5", {7}) == Shape{5});
  CHECK(output("dense: 5", {9, 7}) == Shape{9, 5});
  CHECK(output("dense: {units: 5, activation: softmax}", {4, 9, 7}) == Shape{4, 9, 5});
  const BuiltModel model = build("layers: [{dense: {name: d, units: 5}}]", Shape{9, 7});
  CHECK(model.layers[0].parameters == 7 * 5 + 5);
}

TEST_CASE("convolutions and poolings have as many outputs as windows fit") {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t height = pick(9, 40), width = pick(9, 40), channels = pick(1, 5), filters = pick(1, 6);
    const std::int64_t k0 = pick(1, 4), k1 = pick(1, 4), s0 = pick(1, 4), s1 = pick(1, 4), d = pick(1, 2),
                       p = pick(0, 3);
    const Shape image{height, width, channels};
    const std::int64_t span0 = d * (k0 - 1) + 1, span1 = d * (k1 - 1) + 1;
    const std::string conv =
        format("conv2d: {{filters: {}, kernel_size: [{}, {}], strides: [{}, {}], dilation_rate: {}, ", filters, k0, k1,
               s0, s1, d);
    CAPTURE(conv, height, width, p);
    CHECK(output(conv + "padding: valid}", image) ==
          Shape{windows(height, span0, s0, 0, 0), windows(width, span1, s1, 0, 0), filters});
    CHECK(output(conv + "padding: same}", image) == Shape{(height + s0 - 1) / s0, (width + s1 - 1) / s1, filters});
    CHECK(output(conv + format("padding: [{}, {}]}}", p, p + 1), image) ==
          Shape{windows(height, span0, s0, p, p), windows(width, span1, s1, p + 1, p + 1), filters});
    for (const char* kind : {"max_pooling2d", "average_pooling2d"}) {
      const std::string pool = format("{}: {{pool_size: [{}, {}], strides: [{}, {}], ", kind, k0, k1, s0, s1);
      CHECK(output(pool + "padding: valid}", image) ==
            Shape{windows(height, k0, s0, 0, 0), windows(width, k1, s1, 0, 0), channels});
      CHECK(output(pool + "padding: same}", image) == Shape{(height + s0 - 1) / s0, (width + s1 - 1) / s1, channels});
    }
  }
}

TEST_CASE("same padding is split as in TensorFlow: the odd pixel at the end") {
  const auto same = [](std::int64_t size, int kernel, int stride) {
    const Window w = window_of(build(
        format("layers:\n  - conv2d: {{filters: 1, kernel_size: {}, strides: {}, padding: same}}", kernel, stride),
        {size, size, 1}));
    CHECK(w.padding_before[0] == w.padding_before[1]);
    return std::pair{w.padding_before[0], w.padding_after[0]};
  };
  CHECK(same(224, 3, 2) == std::pair<std::int64_t, std::int64_t>{0, 1});
  CHECK(same(224, 7, 2) == std::pair<std::int64_t, std::int64_t>{2, 3});
  CHECK(same(225, 3, 2) == std::pair<std::int64_t, std::int64_t>{1, 1});
  CHECK(same(28, 5, 1) == std::pair<std::int64_t, std::int64_t>{2, 2});
  CHECK(same(28, 2, 1) == std::pair<std::int64_t, std::int64_t>{0, 1});
  CHECK(same(10, 1, 3) == std::pair<std::int64_t, std::int64_t>{0, 0});
}

TEST_CASE("pooling strides equal the window by default, and other layers keep or drop dimensions") {
  CHECK(output("max_pooling2d: {pool_size: 3}", {9, 10, 2}) == Shape{3, 3, 2});
  CHECK(output("max_pooling2d: {pool_size: 3, strides: 1}", {9, 10, 2}) == Shape{7, 8, 2});
  CHECK(output("max_pooling2d: {pool_size: 3, strides: 2, padding: 1}", {112, 112, 2}) == Shape{56, 56, 2});
  CHECK(output("global_average_pooling2d", {9, 10, 7}) == Shape{7});
  CHECK(output("flatten", {9, 10, 7}) == Shape{630});
  CHECK(output("batch_normalization", {9, 10, 7}) == Shape{9, 10, 7});
  CHECK(output("dropout: 0.3", {9}) == Shape{9});
}

TEST_CASE("parameters have Keras' shapes, fans and numbers") {
  const BuiltModel model = build(R"(layers:
  - conv2d: {name: c, filters: 8, kernel_size: [3, 5], groups: 2}
  - batch_normalization: {name: bn, center: false}
  - flatten
  - dense: {name: d, units: 7, use_bias: false, kernel_initializer: {name: random_normal, stddev: 0.1}})",
                                 {8, 9, 6});
  const auto& p = model.graph.parameters;
  REQUIRE(p.size() == 4);
  const auto shape = [&](std::size_t i) { return model.graph.tensor(p[i].tensor).type.shape; };
  CHECK(shape(0) == Shape{3, 5, 3, 8});
  CHECK(p[0].initializer.name == "glorot_uniform");
  CHECK(p[0].initializer.fan_in == 3 * 5 * 3);
  CHECK(p[0].initializer.fan_out == 3 * 5 * 8);
  CHECK(p[0].decay);
  CHECK(shape(1) == Shape{8});
  CHECK(p[1].initializer.name == "zeros");
  CHECK_FALSE(p[1].decay);
  CHECK(model.graph.tensor(p[2].tensor).name == "bn/gamma");
  CHECK(p[2].initializer.name == "ones");
  CHECK_FALSE(p[2].decay);
  CHECK(shape(3) == Shape{6 * 5 * 8, 7});
  CHECK(p[3].initializer.name == "normal");
  CHECK(p[3].initializer.stddev == 0.1);
  CHECK(model.layers[0].parameters == 3 * 5 * 3 * 8 + 8);
  CHECK(model.layers[0].flops == 2.0 * (6 * 5 * 8) * (3 * 5 * 3));
  CHECK(model.layers[3].flops == 2.0 * 240 * 7);
}

TEST_CASE("zero_padding2d accepts one number, one for each axis, or one for each border") {
  const Shape image{6, 7, 3};
  CHECK(output("zero_padding2d", image) == Shape{8, 9, 3});
  CHECK(output("zero_padding2d: 2", image) == Shape{10, 11, 3});
  CHECK(output("zero_padding2d: {padding: [1, 2]}", image) == Shape{8, 11, 3});
  CHECK(output("zero_padding2d: {padding: [[1, 0], [2, 3]]}", image) == Shape{7, 12, 3});
}

TEST_CASE("layer_normalization has gamma and beta of the last dimension") {
  const BuiltModel model = build("layers: [layer_normalization, flatten, {dense: 2}]", Shape{4, 5});
  CHECK(model.layers[0].output == Shape{4, 5});
  CHECK(model.layers[0].parameters == 10);
}

}  // namespace trainctl::testing::shapes_test
