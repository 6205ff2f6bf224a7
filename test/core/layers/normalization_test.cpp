// Tests the layers group_normalization and prelu: shapes, parameters and errors.
#include "core/base/format.h"
#include "core/graph/ops/elementwise/prelu.h"
#include "core/graph/ops/normalization/group_norm.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::normalization_test {
namespace {

// A network of the layer and a dense layer.
std::string network(const std::string& layer) { return "layers:\n  - " + layer + "\n  - flatten\n  - dense: 1"; }

}  // namespace

TEST_CASE("group_normalization has gamma and beta of the channels, without weight decay") {
  const BuiltModel model = build(network("group_normalization: {name: gn}"), Shape{4, 5, 96});
  const auto& p = model.graph.parameters;
  CHECK(model.layers[0].output == Shape{4, 5, 96});
  CHECK(model.layers[0].parameters == 192);
  CHECK(model.graph.tensor(p[0].tensor).name == "gn/gamma");
  CHECK(model.graph.tensor(p[0].tensor).type.shape == Shape{96});
  CHECK(p[0].initializer.name == "ones");
  CHECK(model.graph.tensor(p[1].tensor).name == "gn/beta");
  CHECK(p[1].initializer.name == "zeros");
  CHECK_FALSE(p[0].decay);
  CHECK_FALSE(p[1].decay);
  CHECK(model.graph.ops[0].as<GroupNorm>().a.groups == 32);
  CHECK(model.graph.ops[0].as<GroupNorm>().a.epsilon == 1e-3f);
  CHECK(model.graph.tensor(model.graph.ops[0].outputs[1]).type.shape == Shape{2, 32});
}

TEST_CASE("group_normalization accepts any number of groups that divides the channels") {
  const auto layer = [](const std::string& keys, Shape sample) {
    return build(network("group_normalization: {" + keys + "}"), std::move(sample));
  };
  CHECK(layer("groups: -1", {4, 5, 6}).graph.ops[0].as<GroupNorm>().a.groups == 6);
  CHECK(layer("groups: 1", {7}).graph.ops[0].as<GroupNorm>().a.groups == 1);
  CHECK(layer("groups: 3, center: false", {8, 6}).layers[0].parameters == 6);
  CHECK(layer("groups: 3, center: false, scale: false", {8, 6}).layers[0].parameters == 0);
  const auto wrong = [](int groups, std::int64_t channels) {
    return errors(network(format("group_normalization: {{name: g, groups: {}}}", groups)), Shape{8, channels});
  };
  CHECK(wrong(32, 48) ==
        "m.yaml:2:5: group_normalization 'g': groups 32 does not divide 48 channels: 24 and 48 do (from the input)");
  CHECK(wrong(5, 36) ==
        "m.yaml:2:5: group_normalization 'g': groups 5 does not divide 36 channels: 4 and 6 do (from the input)");
  CHECK(wrong(32, 16) ==
        "m.yaml:2:5: group_normalization 'g': groups 32 does not divide 16 channels: 16 does (from the input)");
  CHECK(wrong(0, 16) ==
        "m.yaml:2:5: group_normalization 'g': groups 0 does not divide 16 channels: 1 does (from the input)");
}

TEST_CASE("prelu has an alpha for each value of a sample or for each channel, in Keras' shape") {
  const auto alpha_of = [](const std::string& keys, Shape sample) {
    const BuiltModel model = build(network("prelu: {name: p" + keys + "}"), sample);
    const GraphParameter& alpha = model.graph.parameters[0];
    CHECK(model.layers[0].output == sample);
    CHECK(model.graph.tensor(alpha.tensor).name == "p/alpha");
    CHECK_FALSE(alpha.decay);
    return model.graph.tensor(alpha.tensor).type.shape;
  };
  CHECK(alpha_of("", {4, 5, 6}) == Shape{4, 5, 6});
  CHECK(alpha_of("", {7}) == Shape{7});
  CHECK(alpha_of(", shared_axes: [1, 2]", {4, 5, 6}) == Shape{1, 1, 6});
  CHECK(alpha_of(", shared_axes: [2, 1]", {4, 5, 6}) == Shape{1, 1, 6});
  CHECK(alpha_of(", shared_axes: [1]", {4, 5}) == Shape{1, 5});
  const BuiltModel model = build(network("prelu: {alpha_initializer: {name: constant, value: 0.25}}"), Shape{4});
  CHECK(model.graph.parameters[0].initializer.value == 0.25);
  CHECK(build(network("prelu"), Shape{4}).graph.parameters[0].initializer.name == "zeros");
}

TEST_CASE("prelu shares alpha along all axes but the last, or along none") {
  CHECK(errors(network("prelu: {name: p, shared_axes: [1]}"), Shape{4, 5, 6}) ==
        "m.yaml:2:5: prelu 'p': shared_axes [1] of input 4x5x6: alpha can be shared along none of its axes, or along "
        "all but the last: [1, 2] (from the input)");
  CHECK(errors(network("prelu: {name: p, shared_axes: [1, 2, 3]}"), Shape{4, 5, 6}) ==
        "m.yaml:2:5: prelu 'p': shared_axes [1, 2, 3] of input 4x5x6: alpha can be shared along none of its axes, or "
        "along all but the last: [1, 2] (from the input)");
  CHECK(
      errors(network("prelu: {name: p, shared_axes: [1]}"), Shape{4}) ==
      "m.yaml:2:5: prelu 'p': shared_axes [1] of input 4: alpha can be shared along none of its axes (from the input)");
}

}  // namespace trainctl::testing::normalization_test
