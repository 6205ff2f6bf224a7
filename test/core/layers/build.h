// Builds models from YAML text, for the tests of layers.
#pragma once

#include <string>

#include "core/layers/model/model.h"
#include "core/layers/model/model_options.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"

namespace trainctl::testing {

// Reads the model of a document `{layers: ...}` or `{preset: ...}` that is called "m.yaml". `reader` has the errors.
inline ModelOptions read_model(const std::string& yaml, Reader& reader) {
  const Node node = expand_preset(parse_yaml(yaml, "m.yaml", TRAINCTL_SOURCE_DIR, reader), load_preset, reader);
  ModelOptions model;
  if (reader.ok()) section_of<ModelOptions>().read(node, reader, &model);
  return model;
}

inline BuiltModel build(const std::string& yaml, BuildOptions options, Reader& reader) {
  const ModelOptions model = read_model(yaml, reader);
  if (!reader.ok()) return {};
  return build_model(model, options, reader);
}

// Throws ConfigError if the model has errors.
inline BuiltModel build(const std::string& yaml, Shape sample, bool training = true, bool logits = false) {
  Reader reader;
  BuildOptions options;
  options.batch = 2;
  options.inputs[0].sample = std::move(sample);
  options.training = training;
  options.logits = {logits};
  BuiltModel model = build(yaml, options, reader);
  reader.throw_if_failed();
  return model;
}

// Returns all error messages, one per line.
inline std::string errors(const std::string& yaml, Shape sample) {
  Reader reader;
  BuildOptions options;
  options.inputs[0].sample = std::move(sample);
  build(yaml, options, reader);
  std::string text;
  for (const Diagnostic& diagnostic : reader.diagnostics()) text += (text.empty() ? "" : "\n") + to_string(diagnostic);
  return text;
}

inline std::int64_t parameters(const BuiltModel& model) {
  std::int64_t count = 0;
  for (const GraphParameter& parameter : model.graph.parameters) {
    count += model.graph.tensor(parameter.tensor).type.shape.count();
  }
  return count;
}

}  // namespace trainctl::testing
