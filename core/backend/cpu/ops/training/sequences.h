// Lowers losses and metrics over sequences: their kernels process one sample per thread.
#pragma once

#include <cstdint>

#include "core/backend/cpu/lower.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/losses/sequences.h"
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

}  // namespace trainctl::cpu
