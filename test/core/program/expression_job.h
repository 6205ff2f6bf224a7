// Jobs and samples for tests of losses and metrics that are expressions.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/exec/engine.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"

namespace trainctl::expression_test {

inline constexpr std::int64_t samples = 6, positions = 3, width = 4;

inline const std::string by_sample = "layers: [{dense: {units: 5, activation: tanh}}, {dense: {units: 4}}]";
inline const std::string probabilities =
    "layers: [{dense: {units: 5, activation: tanh}}, {dense: {units: 4, activation: softmax}}]";

// A job whose inputs and targets have `width` values for each sample, or for each of its positions.
inline TestJob job_of(const std::string& network, const std::string& loss, bool has_positions,
                      bool weighs_positions = false, const std::string& metrics = "mean_absolute_error") {
  TestJob job(network, "sgd", loss, metrics);
  job.spec.inputs[0].sample = has_positions ? Shape{positions, width} : Shape{width};
  job.spec.outputs[0].target.shape = job.spec.inputs[0].sample;
  if (weighs_positions) {
    job.spec.weight = {positions};
    job.spec.is_masked = true;
  }
  return job;
}

// Random samples with targets between 0.1 and 1, of which sample 2 has the weight 0 and targets 0. Their classes are
// random numbers below `width`.
struct Samples {
  std::vector<float> inputs, targets, weights;
  std::vector<std::int32_t> classes;
  std::vector<std::int64_t> numbers;

  Samples(bool has_positions, bool weighs_positions) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform(0.1f, 1.0f);
    const std::int64_t rows = has_positions ? positions : 1;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (std::int64_t k = 0; k < rows * width; ++k) {
        inputs.push_back(normal(random));
        targets.push_back(i == 2 ? 0.0f : uniform(random));
      }
      for (std::int64_t k = 0; k < (weighs_positions ? positions : 1); ++k) {
        weights.push_back(i == 2 ? 0.0f : 0.5f + 0.25f * static_cast<float>(i + k));
      }
      for (std::int64_t k = 0; k < rows; ++k) classes.push_back(static_cast<std::int32_t>(random() % width));
      numbers.push_back(i);
    }
  }
  // A batch of all samples, with the same targets for each of `outputs` outputs.
  Batch batch(std::size_t outputs = 1) {
    Batch batch = batch_of(inputs, targets, weights, numbers);
    batch.targets.assign(outputs, view_of(targets));
    return batch;
  }
  Batch batch_of_classes() { return batch_of(inputs, classes, weights, numbers); }
};

}  // namespace trainctl::expression_test
