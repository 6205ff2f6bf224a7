// Lowers losses and metrics over sequences: their kernels process one sample per thread.
#pragma once

#include <cstdint>

#include "core/backend/cpu/lower.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/metrics/metrics.h"

namespace trainctl::cpu {

// Lower the loss of the op `def`, and a metric, for predictions of type T.
template <class T>
Lowering lower_sequence_loss(const LowerContext& context, const Loss& def, const Ctc& rule);
template <class T, class Rule>
Lowering lower_sequence_metric(const LowerContext& context, const Metric& def, const Rule& rule);

// The sizes of the samples of a loss or metric over sequences, from its inputs.
struct SequenceSizes {
  std::int64_t samples, steps, classes, longest;  // longest: the length of a row of targets

  explicit SequenceSizes(const LowerContext& context)
      : samples(context.input(0).shape[0]),
        steps(context.input(0).shape[1]),
        classes(context.input(0).shape[2]),
        longest(context.input(1).shape[1]) {}
};

// Writes the numbers of the steps that exist to `numbers`; returns how many there are. `mask` may be null.
inline int existing_steps(const std::uint8_t* mask, std::int64_t steps, std::int32_t* numbers) {
  int count = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    if (mask == nullptr || mask[t] != 0) numbers[count++] = static_cast<std::int32_t>(t);
  }
  return count;
}

// Writes the classes of a target, without its padding, to `classes`; returns how many there are.
inline int target_classes(const std::int32_t* target, std::int64_t longest, int mask_index, std::int32_t* classes) {
  int count = 0;
  for (std::int64_t i = 0; i < longest; ++i) {
    if (target[i] != mask_index) classes[count++] = target[i];
  }
  return count;
}

}  // namespace trainctl::cpu
