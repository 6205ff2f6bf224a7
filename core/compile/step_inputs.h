// What the host brings to a step, and where it lies.
#pragma once

#include <array>
#include <cstddef>

#include "core/program/program.h"

namespace trainctl {

enum class StepInputs { scalars, inputs, targets, weights, samples };
inline constexpr int step_inputs = 5;
using StepSources = std::array<const std::byte*, step_inputs>;

// What a batch brings, in the order of StepInputs; no_tensor for the scalars, which are none of its, and for what the
// program does not read.
inline std::array<TensorId, step_inputs> batch_parts(const BatchTensors& batch) {
  return {no_tensor, batch.inputs, batch.targets, batch.weights, batch.samples};
}

}  // namespace trainctl
