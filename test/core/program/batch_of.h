// Makes batches of vectors, for tests.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

// Values of a batch as they lie in a vector, which must outlive the result.
template <class T>
View view_of(std::vector<T>& values) {
  static_assert(std::same_as<T, float> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>);
  const DType dtype = std::same_as<T, float>          ? DType::float32
                      : std::same_as<T, std::int32_t> ? DType::int32
                                                      : DType::int64;
  return {values.data(), dtype, std::ssize(values)};
}

// A batch for a network with one input and one output; all vectors must outlive it. `numbers`: one for each sample.
template <class Input, class Target>
Batch batch_of(std::vector<Input>& inputs, std::vector<Target>& targets, std::vector<float>& weights,
               std::vector<std::int64_t>& numbers) {
  Batch batch;
  batch.inputs = {view_of(inputs)};
  batch.targets = {view_of(targets)};
  batch.weights = view_of(weights);
  batch.samples = view_of(numbers);
  batch.count = std::ssize(numbers);
  return batch;
}

}  // namespace trainctl
