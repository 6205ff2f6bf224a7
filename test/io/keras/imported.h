// Compares the outputs of an imported network with Keras' outputs.
#pragma once

#include "core/layers/model/model.h"
#include "io/keras/import.h"
#include "test/catch.h"
#include "test/io/weights/support.h"

namespace trainctl::test {

// Returns the largest relative difference between the imported network's predictions for the inputs in `golden_file`
// and Keras' outputs there.
inline double imported_difference(const std::string& file, const std::string& golden_file) {
  const ImportedNetwork network = import_keras(file, "weights.safetensors");
  const Arrays golden(golden_file);
  TestJob job(model_of(network));
  job.spec.inputs.clear();
  job.spec.outputs.clear();
  Batch batch;
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::int32_t>> tokens;
  const std::vector<std::string> names = input_names(job.model);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = "input" + std::to_string(i);
    const Shape shape = golden.shape(name);
    ModelInput input{names[i], shape.without_front(), {}};
    values.push_back(golden.values(name));
    tokens.emplace_back(values.back().begin(), values.back().end());
    batch.count = shape[0];
    if (token_count(job.model, names[i]) > 0) input.format.dtype = DType::int32;
    job.spec.inputs.push_back(input);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_token = job.spec.inputs[i].format.dtype == DType::int32;
    void* data = is_token ? static_cast<void*>(tokens[i].data()) : values[i].data();
    batch.inputs.push_back({data, job.spec.inputs[i].format.dtype, static_cast<std::int64_t>(values[i].size())});
  }
  for (const std::string& name : output_names(job.model)) job.spec.outputs.push_back({name});
  job.spec.optimizer = {};
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({job.prediction(batch.count)}, *backend, choices));
  const auto loaded = by_name(network.weights.snapshot.weights);
  for (const NamedTensor& tensor : engine.weights()) {
    std::memcpy(tensor.view.data, loaded.at(tensor.name)->view.data, static_cast<std::size_t>(tensor.view.bytes()));
  }
  engine.upload();
  StepResult result;
  engine.run(0, batch, {}, result);
  double largest = 0;
  const auto& predictions = engine.program(0).program.step.predictions;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    std::vector<std::byte> bytes;
    engine.read_tensor(0, predictions[i], bytes);
    std::vector<float> found(bytes.size() / sizeof(float));
    std::memcpy(found.data(), bytes.data(), bytes.size());
    const double relative = relative_difference(found, golden.values("output" + std::to_string(i)));
    CAPTURE(file, i, relative);
    CHECK(relative < 1e-4);
    largest = std::max(largest, relative);
  }
  return largest;
}

}  // namespace trainctl::test
