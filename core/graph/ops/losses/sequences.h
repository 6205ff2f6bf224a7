// Functions on the targets and steps of a sample of a loss or metric over sequences, which kernels call in one thread.
#pragma once

#include <cstdint>

#include "core/base/kernel_function.h"

namespace trainctl {

// Writes the numbers of the steps that exist to `numbers`; returns how many there are. `mask` may be null.
TRAINCTL_KERNEL_FUNCTION int existing_steps(const std::uint8_t* mask, std::int64_t steps, std::int32_t* numbers) {
  int count = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    if (mask == nullptr || mask[t] != 0) numbers[count++] = static_cast<std::int32_t>(t);
  }
  return count;
}

// Writes the classes of a target, without its padding, to `classes`; returns how many there are.
TRAINCTL_KERNEL_FUNCTION int target_classes(const std::int32_t* target, std::int64_t longest, int mask_index,
                                            std::int32_t* classes) {
  int count = 0;
  for (std::int64_t i = 0; i < longest; ++i) {
    if (target[i] != mask_index) classes[count++] = target[i];
  }
  return count;
}

// The edit distance of two sequences. `distances` has the memory of length + 1 numbers.
TRAINCTL_KERNEL_FUNCTION int edit_distance(const std::int32_t* decoded, int decoded_length, const std::int32_t* target,
                                           int length, std::int32_t* distances) {
  for (int j = 0; j <= length; ++j) distances[j] = j;  // from the beginnings of the target to nothing
  for (int i = 0; i < decoded_length; ++i) {
    std::int32_t diagonal = distances[0];
    distances[0] = i + 1;
    for (int j = 0; j < length; ++j) {
      const std::int32_t replaced = diagonal + (decoded[i] == target[j] ? 0 : 1);
      diagonal = distances[j + 1];
      const std::int32_t other = 1 + (diagonal < distances[j] ? diagonal : distances[j]);
      distances[j + 1] = replaced < other ? replaced : other;
    }
  }
  return distances[length];
}

}  // namespace trainctl
