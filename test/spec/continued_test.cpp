// A network that is included goes on from one of its layers.
#include "core/layers/model/names.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"
#include "test/checkpoint/support.h"

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

TEST_CASE("a network is cut behind a layer, and others follow") {
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
  // What is cut or new begins with initial values; "predictions" is both.
  CHECK(contains(model, "weights: {file: net.safetensors, skip: [hidden/*, predictions/*]}"));
  CHECK(contains(model, "freeze: [conv, predictions]"));
  CHECK_FALSE(contains(model, "until"));
  CHECK_FALSE(contains(model, "train"));
}

TEST_CASE("a network is cut alone, and patterns of what is gone go, too") {
  std::string errors;
  const std::string model = model_of("{include: net.yaml, until: hidden, freeze: [conv]}", errors);
  INFO(model);
  CHECK(contains(model, "{global_average_pooling2d: {name: avg_pool}}, {dense: {name: hidden, units: 8}}]"));
  CHECK(contains(model, "skip: [predictions/*]"));
  CHECK(contains(model_of("{include: net.yaml, until: hidden}", errors), "freeze: [conv]"));
}

TEST_CASE("a layer that an included network lacks is told with the one that may be meant") {
  std::string errors;
  model_of("{include: net.yaml, until: avgpool, layers: [flatten]}", errors);
  CHECK(contains(errors, "the network that is included has no layer 'avgpool'; did you mean 'avg_pool'?"));
}

}  // namespace trainctl::test::continued_test
