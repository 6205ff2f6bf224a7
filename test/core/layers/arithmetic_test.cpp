// Tests layers that merge, reshape, permute and randomly change values: shapes, ops and errors.
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/elementwise/noise.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/graph/ops/reshaping/permute.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::arithmetic_test {
namespace {

// A model of layers `a` and `b`, each of shape [5, 6, 4], and the given layer after them.
std::string after_two(const std::string& layer) {
  return "layers:\n  - conv2d: {name: a, filters: 4, kernel_size: 1}\n"
         "  - conv2d: {name: b, filters: 4, kernel_size: 1, from: input}\n  - " +
         layer;
}

// A model of layer `a` and the given layer after it.
std::string after_one(const std::string& layer) {
  return "layers:\n  - conv2d: {name: a, filters: 4, kernel_size: 1}\n  - " + layer;
}

std::vector<std::string> kinds(const BuiltModel& model) {
  std::vector<std::string> kinds;
  for (const Op& op : model.graph.ops) kinds.emplace_back(op.def->kind());
  return kinds;
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

using Kinds = std::vector<std::string>;

}  // namespace

TEST_CASE("layers combine outputs element by element") {
  const std::pair<const char*, Kinds> cases[] = {{"multiply", {"conv2d", "conv2d", "multiply"}},
                                                 {"subtract", {"conv2d", "conv2d", "scale_by", "add"}},
                                                 {"average", {"conv2d", "conv2d", "add", "scale_by"}},
                                                 {"maximum", {"conv2d", "conv2d", "extremum"}},
                                                 {"minimum", {"conv2d", "conv2d", "extremum"}}};
  for (const auto& [layer, expected] : cases) {
    CAPTURE(layer);
    const BuiltModel model = build(after_two(std::string(layer) + ": {from: [a, b]}"), {5, 6, 3});
    CHECK(model.layers.back().output == Shape{5, 6, 4});
    CHECK(kinds(model) == expected);
  }
  const BuiltModel three = build(after_two("average: {from: [a, b, a]}"), {5, 6, 3});
  CHECK(three.graph.ops.back().as<ScaleBy>().factor == 1.0f / 3);
}

TEST_CASE("rescaling and normalization scale and shift by fixed numbers") {
  const BuiltModel rescaled = build(after_one("rescaling: {scale: 1/255, offset: -1}"), {5, 6, 3});
  const auto& one = rescaled.graph.ops.back().as<Normalize>();
  CHECK(one.scale == std::vector<float>{1 / 255.0f});
  CHECK(one.offset == std::vector<float>{-1});
  CHECK(rescaled.layers.back().output == Shape{5, 6, 4});
  CHECK(rescaled.layers.back().parameters == 0);
  const BuiltModel normalized =
      build(after_one("normalization: {mean: [1, 2, 3, 4], variance: [4, 1, 0, 0.25]}"), {5, 6, 3});
  const auto& each = normalized.graph.ops.back().as<Normalize>();
  CHECK(each.scale == std::vector<float>{0.5f, 1, 1e7f, 2});
  CHECK(each.offset == std::vector<float>{-0.5f, -2, -3e7f, -8});
  CHECK(contains(errors(after_one("normalization: {mean: [1, 2], variance: [1, 2]}"), {5, 6, 3}),
                 "normalization 'normalization': 2 means for 4 channels"));
  CHECK(contains(errors(after_one("normalization: {mean: [1, 2], variance: [1]}"), {5, 6, 3}),
                 "2 means and 1 variances"));
}

TEST_CASE("a factor for each channel multiplies all positions") {
  for (const char* from : {"[a, s]", "[s, a]"}) {
    const BuiltModel model = build(std::string(R"(layers:
  - conv2d: {name: a, filters: 4, kernel_size: 1}
  - global_average_pooling2d
  - reshape: {target_shape: [1, 1, 4]}
  - conv2d: {name: s, filters: 4, kernel_size: 1, activation: sigmoid}
  - multiply: {from: )") + from + "}",
                                   {5, 6, 3});
    CHECK(model.layers.back().output == Shape{5, 6, 4});
    CHECK(kinds(model).back() == "multiply_channels");
  }
}

TEST_CASE("reshape and permute have the right shapes") {
  const auto output = [](const std::string& layer) { return build(after_one(layer), {5, 6, 3}).layers.back().output; };
  CHECK(output("reshape: {target_shape: [10, -1], from: a}") == Shape{10, 12});
  CHECK(output("reshape: {target_shape: [120]}") == Shape{120});
  CHECK(output("reshape: {target_shape: [5, 6, 4]}") == Shape{5, 6, 4});
  CHECK(output("permute: {dims: [3, 1, 2]}") == Shape{4, 5, 6});
  const BuiltModel model = build(after_one("permute: {dims: [3, 1, 2]}"), {5, 6, 3});
  CHECK(model.graph.ops.back().as<Permute>().order == std::vector<std::int64_t>{0, 3, 1, 2});
  CHECK(kinds(build(after_one("permute: {dims: [1, 2, 3]}"), {5, 6, 3})) == Kinds{"conv2d"});
}

TEST_CASE("dot has the other dimensions of both inputs, and sums without copies where it can") {
  const auto dot = [](const std::string& options) {
    return build(
        "layers:\n  - dense: {name: a, units: 4}\n  - permute: {name: b, from: input, dims: [2, 1]}\n  - dot: "
        "{from: [a, b], " +
            options + "}",
        {6, 5});
  };
  CHECK(dot("axes: [1, 2]").layers.back().output == Shape{4, 5});
  CHECK(kinds(dot("axes: [1, 2]")) == Kinds{"dense", "permute", "matmul", "reshape"});
  CHECK(dot("axes: [1, -1], normalize: true").layers.back().output == Shape{4, 5});
  const BuiltModel four =
      build("layers: [{conv2d: {name: a, filters: 4, kernel_size: 1}}, {dot: {from: [a, input], axes: 2}}]", {5, 6, 3});
  CHECK(four.layers.back().output == Shape{5, 4, 5, 3});
  CHECK(kinds(four) == Kinds{"conv2d", "permute", "reshape", "permute", "reshape", "matmul", "reshape"});
  const BuiltModel one = build("layers: [{dense: {name: a, units: 3}}, {dot: {from: [a, input], axes: 1}}]", {3});
  CHECK(one.layers.back().output == Shape{1});
}

TEST_CASE("noise and spatial dropout are ops in training only") {
  for (const char* layer : {"gaussian_noise: 0.5", "spatial_dropout: 0.25"}) {
    CAPTURE(layer);
    CHECK(kinds(build(after_one(layer), {5, 6, 3}, true)).size() == 2);
    CHECK(kinds(build(after_one(layer), {5, 6, 3}, false)).size() == 1);
  }
  const BuiltModel noise = build(after_one("gaussian_noise: 0.5"), {5, 6, 3});
  CHECK(noise.graph.ops.back().as<GaussianNoise>().stddev == 0.5f);
  const BuiltModel dropout = build(after_one("spatial_dropout: 0.25"), {5, 6, 3});
  CHECK(dropout.graph.ops.back().as<Dropout>().unit == DropoutUnit::channel);
}

TEST_CASE("outputs that cannot be combined or reshaped lead to one error each") {
  const auto problem = [](const std::string& layer) { return errors(after_two(layer), {5, 6, 3}); };
  CHECK(contains(problem("multiply: {from: [a, input]}"), "5x6x4 of 'a' and 5x6x3 of 'input'"));
  CHECK(contains(problem("subtract: {from: [a, b, a]}"), "a difference needs two"));
  CHECK(contains(problem("maximum: {from: [a]}"), "at least two are needed"));
  CHECK(contains(problem("dot: {from: [a, b, a], axes: 1}"), "from names 3 layers, but dot needs two"));
  CHECK(contains(problem("dot: {from: [a, b], axes: [1, 1, 1]}"), "axes has 3 numbers"));
  CHECK(contains(problem("dot: {from: [a, b], axes: [4, 1]}"), "a sample of 5x6x4 has no dimension 4"));
  CHECK(contains(problem("dot: {from: [a, b], axes: 0}"), "a sample of 5x6x4 has no dimension 0"));
  CHECK(contains(problem("dot: {from: [a, b], axes: [1, 2]}"), "dimension 1 of 5x6x4 and dimension 2 of 5x6x4"));
  CHECK(contains(problem("reshape: {target_shape: [7, -1]}"), "5x6x4 has 120 values, which 7x-1 cannot hold"));
  CHECK(contains(problem("reshape: {target_shape: [-1, -1]}"), "more than one dimension of size -1"));
  CHECK(contains(problem("reshape: {target_shape: [0, 3]}"), "size 0"));
  CHECK(contains(problem("permute: {dims: [1, 2, 2]}"), "each dimension of a sample once, from 1 to 3"));
  CHECK(contains(errors("layers:\n  - conv2d: {filters: 4, kernel_size: 3, kernel_initializer: identity}", {5, 6, 3}),
                 "identity is for matrices"));
}

}  // namespace trainctl::testing::arithmetic_test
