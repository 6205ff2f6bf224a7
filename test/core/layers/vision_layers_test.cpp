// Tests the layers of vision transformers and ConvNeXt: shapes, parameters and errors.
#include "core/graph/ops/elementwise/combine.h"
#include "test/catch.h"
#include "test/core/layers/build.h"

namespace trainctl::testing::vision_layers_test {
namespace {

const GraphParameter& parameter_of(const BuiltModel& model, const std::string& name) {
  for (const GraphParameter& parameter : model.graph.parameters) {
    if (model.graph.tensor(parameter.tensor).name == name) return parameter;
  }
  FAIL("no parameter " << name);
  return model.graph.parameters[0];
}

}  // namespace

TEST_CASE("class_token adds a position, whose vector is a parameter without weight decay") {
  const BuiltModel model = build(
      "layers: [{class_token: {name: c, initializer: ones}}, {position_embedding: {name: p, sequence_length: auto}}]",
      Shape{4, 5});
  const GraphParameter& token = parameter_of(model, "c/token");
  CHECK(model.graph.tensor(token.tensor).type.shape == Shape{1, 5});
  CHECK(token.initializer.name == "ones");
  CHECK_FALSE(token.decay);
  CHECK(model.layers[0].output == Shape{5, 5});
  CHECK(model.graph.tensor(parameter_of(model, "p/embeddings").tensor).type.shape == Shape{5, 5});
  CHECK(errors("layers: [class_token]", Shape{4, 5, 3}) ==
        "m.yaml:1:10: class_token 'class_token': input 4x5x3 is not a sequence (steps, channels) (from the input)");
}

TEST_CASE("take_position takes the vector of one position") {
  CHECK(build("layers: [{take_position: 3}, {dense: 2}]", Shape{4, 5}).layers[0].output == Shape{5});
  CHECK(build("layers: [{take_position: -4}, {dense: 2}]", Shape{4, 5}).layers[0].output == Shape{5});
  CHECK(build("layers: [take_position, {dense: 2}]", Shape{1, 5}).layers[0].output == Shape{5});
  for (const std::string index : {"4", "-5"}) {
    CHECK(errors("layers: [{take_position: " + index + "}]", Shape{4, 5}) ==
          "m.yaml:1:10: take_position 'take_position': index " + index +
              " is not a position of an input with 4 positions (from the input)");
  }
}

TEST_CASE("layer_scale has a factor for each channel, without weight decay") {
  for (const Shape& sample : {Shape{5}, Shape{4, 5}, Shape{3, 4, 5}}) {
    const BuiltModel model = build("layers: [{layer_scale: {name: s, init_values: 0.1}}]", sample);
    const GraphParameter& gamma = parameter_of(model, "s/gamma");
    CHECK(parameters(model) == 5);
    CHECK(gamma.initializer.value == 0.1);
    CHECK_FALSE(gamma.decay);
    CHECK(model.layers[0].output == sample);
    CHECK(model.graph.ops.back().get_if<MultiplyChannels>() != nullptr);
  }
}

}  // namespace trainctl::testing::vision_layers_test
