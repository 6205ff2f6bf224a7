// Lowers losses and metrics over sequences, and functions of their kernels, in which a block processes a sample.
#pragma once

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/lower.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/losses/sequences.h"
#include "core/graph/ops/metrics/metrics.h"

namespace trainctl::cuda {

// Lower the loss of the op `def`, and a metric, for predictions of type T.
template <class T>
Lowering lower_sequence_loss(const LowerContext& context, const Loss& def, const Ctc& rule);
template <class T, class Rule>
Lowering lower_sequence_metric(const LowerContext& context, const Metric& def, const Rule& rule);

// The sizes of the samples of a loss or metric over sequences, from its inputs.
struct SequenceSizes {
  int samples, steps, classes, longest;  // longest: the length of a row of targets

  explicit SequenceSizes(const LowerContext& context)
      : samples(static_cast<int>(context.input(0).shape[0])),
        steps(static_cast<int>(context.input(0).shape[1])),
        classes(static_cast<int>(context.input(0).shape[2])),
        longest(static_cast<int>(context.input(1).shape[1])) {
    require(context.input(0).shape.count() / samples <= 1 << 30, "a sample of a sequence has more than 2^30 values");
  }
  __host__ __device__ std::int64_t values() const { return std::int64_t{steps} * classes; }
};

// Combines the values of a warp's threads by two(a, b), which must be commutative; all threads get the result.
template <class V, class Two>
__device__ V join_warp(V value, const Two& two) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = two(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

}  // namespace trainctl::cuda
