// Shared by the tests of weights: golden files, networks and their predictions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "io/checkpoint/safetensors.h"
#include "io/keras/import.h"
#include "io/weights/load.h"
#include "io/yaml/yaml.h"
#include "parallel/comm/communicators.h"
#include "test/core/layers/build.h"
#include "test/core/program/job.h"
#include "test/support/snapshots.h"

namespace trainctl::test {

inline const std::string golden = TRAINCTL_SOURCE_DIR "/test/golden/pretrained/";

// The network of test/golden/pretrained.py.
inline const std::string small_layers = R"(
layers:
  - conv2d: {name: c1, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - depthwise_conv2d: {name: dw, kernel_size: 3, depth_multiplier: 2, use_bias: false}
  - batch_normalization: {name: bn, epsilon: 1e-5}
  - prelu: {name: slope, shared_axes: [1, 2]}
  - max_pooling2d: {pool_size: 2}
  - conv2d: {name: c2, filters: 8, kernel_size: 1, groups: 2}
  - conv2d_transpose: {name: up, filters: 4, kernel_size: 2, strides: 2}
  - flatten
  - batch_normalization: {name: norm, epsilon: 1e-5}
  - dropout: 0.5
  - dense: {name: hidden, units: 7, activation: relu}
  - dense: {name: predictions, units: 5, activation: softmax}
)";

// The names of its layers in PyTorch.
inline const std::string small_names =
    "names: {torch: [^c1$ -> features.0, ^dw$ -> features.2, ^bn$ -> features.3, ^slope$ -> features.4, "
    "^c2$ -> features.6, ^up$ -> features.7, ^norm$ -> head.1, ^hidden$ -> head.2, ^predictions$ -> head.4]}";

inline std::string small_model(const std::string& file, const std::string& further = "") {
  return small_layers + "weights: {file: \"" + file + "\", " + small_names + further + "}\n";
}

inline Shape small_image() { return {10, 8, 3}; }

// A network for evaluation, with the weights that its config names.
struct PretrainedNetwork {
  ModelOptions model;
  Graph graph;

  PretrainedNetwork(const std::string& yaml, const Shape& sample) {
    Reader reader;
    model = testing::read_model(yaml, reader);
    reader.throw_if_failed();
    BuildOptions options{.inputs = {{"", sample, {}}}, .training = false};
    if (token_count(model, "") > 0) options.inputs[0].format.dtype = DType::int32;
    graph = build_model(model, options, reader).graph;
    reader.throw_if_failed();
  }
  LoadedWeights load() const { return load_weights(*model.weights, graph, 1); }
};

inline LoadedWeights load(const std::string& yaml, const Shape& sample) {
  return PretrainedNetwork(yaml, sample).load();
}

// The section `model` of an imported config.
inline std::string model_of(const ImportedNetwork& network) {
  Reader reader;
  const Node document = parse_yaml(network.config, "imported.yaml", ".", reader);
  reader.throw_if_failed();
  return to_yaml(*document.find("model"));
}

// Reads the tensors of a safetensors file.
struct Arrays {
  SafetensorsFile file;

  explicit Arrays(const std::string& path) : file(path) {}
  std::vector<float> values(const std::string& name) const {
    const StoredTensor& tensor = *file.header().find(name);
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    file.read(tensor, values.data());
    return values;
  }
  const Shape& shape(const std::string& name) const { return file.header().find(name)->shape; }
};

// Returns the predictions of a network with these weights for a batch of values or tokens.
inline std::vector<float> predict(const std::string& yaml, const LoadedWeights& weights, const Shape& batch,
                                  std::vector<float> inputs) {
  TestJob job(yaml);
  job.spec.inputs[0].sample = batch.without_front();
  const bool has_tokens = token_count(*job.spec.model, "") > 0;
  if (has_tokens) job.spec.inputs[0].format.dtype = DType::int32;
  job.spec.outputs[0].loss = {};
  job.spec.outputs[0].metrics.clear();
  job.spec.optimizer = {};
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({job.prediction(batch[0])}, *backend, choices));
  const auto loaded = by_name(weights.snapshot.weights);
  for (const NamedTensor& tensor : engine.weights()) {
    std::memcpy(tensor.view.data, loaded.at(tensor.name)->view.data, static_cast<std::size_t>(tensor.view.bytes()));
  }
  engine.upload();
  Batch samples;
  std::vector<std::int32_t> tokens(inputs.begin(), inputs.end());
  samples.inputs = {{inputs.data(), DType::float32, batch.count()}};
  if (has_tokens) samples.inputs = {{tokens.data(), DType::int32, batch.count()}};
  samples.count = batch[0];
  StepResult result;
  engine.run(0, samples, {}, result);
  const Program& program = engine.program(0).program;
  std::vector<std::byte> bytes;
  engine.read_tensor(0, program.step.predictions[0], bytes);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The largest difference, relative to the largest expected value.
inline double relative_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return INFINITY;
    difference = std::max(difference, std::abs(static_cast<double>(found[i]) - expected[i]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return difference / largest;
}

}  // namespace trainctl::test
