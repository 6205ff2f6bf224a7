// Tests configs that include a network and continue it after one of its layers, or replace layers.
#include "core/layers/model/names.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::continued_test {
namespace {

const std::string net = R"(
model:
  layers:
    - conv2d: {name: conv, filters: 4, kernel_size: 3}
    - residual: {name: block, layers: [{conv2d: {filters: 4, kernel_size: 3, padding: same}}]}
    - global_average_pooling2d: {name: avg_pool}
    - dense: {name: hidden, units: 8}
    - dense: {name: hidden, units: 8}
    - dropout: 0.5
    - dense: {name: predictions, units: 1000, activation: softmax}
  weights: net.safetensors
  freeze: [conv, predictions]
train: {loss: mean_squared_error, optimizer: adam}
)";

// The section `model` of a config that includes `net`, and its errors.
std::string model_of(const std::string& section, std::string& errors) {
  const TemporaryFolder folder;
  write_text(folder / "net.yaml", net);
  write_text(folder / "mine.yaml", "model: " + section + "\n");
  Reader reader;
  const Node document = load_yaml(
      folder / "mine.yaml", [](auto&) { return std::nullopt; }, reader);
  errors.clear();
  for (const Diagnostic& diagnostic : reader.diagnostics()) errors += diagnostic.message + "\n";
  const Node* model = document.find("model");
  return model == nullptr ? "" : flow_text(*model);
}

}  // namespace

TEST_CASE("a network is cut after a layer, and other layers follow") {
  std::string errors;
  const std::string model = model_of(
      "{include: net.yaml, until: avg_pool, layers: [{dropout: 0.2}, {dense: {name: predictions, units: 5}}]}", errors);
  INFO(model);
  CHECK(errors.empty());
  const std::string kept =
      "{conv2d: {name: conv, filters: 4, kernel_size: 3}}, "
      "{residual: {name: block, layers: [{conv2d: {filters: 4, kernel_size: 3, padding: same}}]}}, "
      "{global_average_pooling2d: {name: avg_pool}}, ";
  CHECK(contains(model, "layers: [" + kept + "{dropout: 0.2}, {dense: {name: predictions, units: 5}}]"));
  // Layers that are cut off or new start from initial values; "predictions" is both.
  CHECK(contains(model, "weights: {file: net.safetensors, skip: [hidden/*, predictions/*]}"));
  CHECK(contains(model, "freeze: [conv, predictions]"));
  CHECK_FALSE(contains(model, "until"));
  CHECK_FALSE(contains(model, "train"));
}

TEST_CASE("a network can be cut without new layers, and patterns of removed layers are removed, too") {
  std::string errors;
  const std::string model = model_of("{include: net.yaml, until: hidden, freeze: [conv]}", errors);
  INFO(model);
  CHECK(contains(model, "{global_average_pooling2d: {name: avg_pool}}, {dense: {name: hidden, units: 8}}]"));
  CHECK(contains(model, "skip: [predictions/*]"));
  CHECK(contains(model_of("{include: net.yaml, until: hidden}", errors), "freeze: [conv]"));
}

TEST_CASE("layers of an included network are replaced, with their names and inputs") {
  std::string errors;
  const std::string model = model_of(
      "{include: net.yaml, replace: {hidden: {dense: 16}, conv: {depthwise_conv2d: {kernel_size: 3}}, avg_pool: "
      "global_max_pooling2d}}",
      errors);
  INFO(model);
  CHECK(errors.empty());
  CHECK(
      contains(model,
               "layers: [{depthwise_conv2d: {kernel_size: 3, name: conv}}, {residual: {name: block, layers: [{conv2d: "
               "{filters: 4, kernel_size: 3, padding: same}}]}}, {global_max_pooling2d: {name: avg_pool}}, {dense: "
               "{units: 16, name: hidden}}, {dense: {units: 16, name: hidden}}, {dropout: 0.5}, {dense: {name: "
               "predictions, units: 1000, activation: softmax}}]"));
  CHECK(contains(model, "weights: {file: net.safetensors, skip: [conv/*, hidden/*]}"));
  CHECK(contains(model, "freeze: [predictions]"));
  CHECK_FALSE(contains(model, "replace"));
  // With `until`, the changed network is cut.
  CHECK(contains(model_of("{include: net.yaml, until: conv, replace: {conv: {conv2d: {filters: 2, kernel_size: 1}}}, "
                          "layers: [flatten]}",
                          errors),
                 "layers: [{conv2d: {filters: 2, kernel_size: 1, name: conv}}, flatten]"));
  CHECK(errors.empty());
}

TEST_CASE("invalid replacements are reported") {
  std::string errors;
  model_of("{include: net.yaml, replace: {avgpool: flatten}}", errors);
  CHECK(errors == "the included network has no layer 'avgpool'; did you mean 'avg_pool'?\n");
  model_of("{include: net.yaml, replace: {conv: {dense: {name: other, units: 3}}}}", errors);
  CHECK(contains(errors, "the layer keeps the name 'conv'"));
  for (const char* wrong : {"[flatten]", "[]", "{dense: {units: 3}, flatten: {}}"}) {
    model_of(std::string("{include: net.yaml, replace: {conv: ") + wrong + "}}", errors);
    CHECK(contains(errors, "replace needs a layer for 'conv', written as in a list of layers"));
  }
  model_of("{include: net.yaml, replace: conv}", errors);
  CHECK(contains(errors, "replace must be a map from names of layers"));
  model_of("{include: net.yaml, replace: {conv: flatten}, layers: [flatten]}", errors);
  CHECK(contains(errors, "leave out one of them"));
}

TEST_CASE("a missing layer of an included network is reported with the most similar one") {
  std::string errors;
  model_of("{include: net.yaml, until: avgpool, layers: [flatten]}", errors);
  CHECK(contains(errors, "the included network has no layer 'avgpool'; did you mean 'avg_pool'?"));
}

}  // namespace trainctl::test::continued_test
