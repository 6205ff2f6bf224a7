// The sources that the host fills for a step, by number: the scalars and the tensors of a batch.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/checked.h"
#include "core/program/program.h"

namespace trainctl {

// The number of the source with the scalars. The tensors of a batch follow: inputs, targets, weights, sample numbers.
inline constexpr std::size_t scalars_source = 0;

// The address of each source, by number.
using StepSources = std::vector<const std::byte*>;

// The number of sources, scalars included, and the source with a given number from 1 on: a tensor of BatchTensors, or a
// view of a Batch.
template <class Parts>
std::size_t source_count(const Parts& parts) {
  return 1 + parts.inputs.size() + parts.targets.size() + 2;
}
template <class Parts>
const auto& part_at(const Parts& parts, std::size_t number) {
  const std::size_t inputs = parts.inputs.size(), targets = parts.targets.size();
  if (number <= inputs) return parts.inputs[number - 1];
  if (number <= inputs + targets) return parts.targets[number - 1 - inputs];
  return number == inputs + targets + 1 ? parts.weights : parts.samples;
}

// Bytes of a source in a step's batch, all micro-batches together; 0 if the program does not read it.
inline std::int64_t part_bytes(const Program& program, std::size_t number) {
  const auto bytes = [&](const BatchTensors& batch) {
    const TensorId id = part_at(batch, number);
    return id == no_tensor ? 0 : program.tensor(id).type.bytes();
  };
  const std::int64_t equal = checked_multiply(bytes(program.batch), program.micro_batches);
  return program.rest_samples > 0 ? checked_add(equal, bytes(program.rest)) : equal;
}

}  // namespace trainctl
