// Reads configs that are given as text.
#include "test/run/config_support.h"

#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"

namespace trainctl::testing {

const std::string good_config = R"(name: test
seed: 1
data:
  dataset: synthetic
  shape: [8, 8, 1]
  classes: 10
model:
  layers:
    - flatten
    - dense: {units: 10, activation: softmax}
train:
  batch_size: 32
  epochs: 2
  loss: sparse_categorical_crossentropy
  metrics: [accuracy]
  optimizer: {name: sgd, learning_rate: 0.1}
  schedule: {name: cosine, warmup: 1 epoch}
checkpoint: {every: 1 epoch}
cluster: {ranks: 2}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t found = text.find(from);
  REQUIRE(found != std::string::npos);
  return text.replace(found, from.size(), to);
}

RunSpec read_config(const std::string& text, const std::vector<std::string>& settings) {
  Reader reader;
  const VariableLookup variables = [](const std::string& name) -> std::optional<std::string> {
    if (name == "EPOCHS") return "7";
    return {};
  };
  Node document = parse_yaml(text, "c.yaml", "/configs", reader);
  expand_variables(document, variables, reader);
  for (const std::string& setting : settings) apply_setting(document, setting, variables, reader);
  for (Node::Entry& entry : document.entries) {
    if (entry.key == "model") entry.value = expand_preset(entry.value, load_preset, reader);
  }
  RunSpec spec = read_run_spec(document, reader);
  reader.throw_if_failed();
  return spec;
}

std::string config_errors(const std::string& text, const std::vector<std::string>& settings) {
  try {
    read_config(text, settings);
  } catch (const ConfigError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

}  // namespace trainctl::testing
