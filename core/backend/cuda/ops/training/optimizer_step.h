// Types and device functions that the kernels of all optimizers share.
#pragma once

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/training/chunks.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cuda {

// The addresses of a step's scalars.
struct StepScalars {
  const float* learning_rate;
  const std::int64_t* step;
  const float* count;
  const float* flags;
  const float* norm;

  explicit StepScalars(const Buffers& p)
      : learning_rate(p.in<float>(1)),
        step(p.in<std::int64_t>(2)),
        count(p.in<float>(3)),
        flags(p.in<float>(4)),
        norm(p.in<float>(5)) {}
  __device__ bool apply() const { return flags[agree_not_finite] == 0 && isfinite(*norm); }
  // The factor on the summed gradients: 1 / count, times the clipping. A step without samples has a gradient of 0.
  __device__ float scale(float clip_norm) const {
    if (!(*count > 0)) return 0.0f;
    return clip_norm > 0 && *norm > clip_norm ? clip_norm / *norm / *count : 1.0f / *count;
  }
};

// The rule's factors, which depend on the step alone. Each block computes them once, in float64. All threads of the
// block must call this function.
template <class Rule>
__device__ const float* factors_of(const Rule& rule, const StepScalars& scalars) {
  if constexpr (Rule::factors == 0) {
    return nullptr;
  } else {
    __shared__ float factors[Rule::factors];
    const auto i = static_cast<int>(threadIdx.x);
    if (i < Rule::factors) factors[i] = rule.factor(i, *scalars.step);
    __syncthreads();
    return factors;
  }
}

// Sums of the squares of weights and of directions.
struct Squares {
  double weights, directions;
};

// The sums over a block's threads. All threads of the block must call this function.
__device__ inline Squares block_squares(double weights, double directions) {
  __shared__ double of_weights[32], of_directions[32];
  return {block_sum(weights, of_weights), block_sum(directions, of_directions)};
}

// The sums over a parameter's chunks. All threads of the block must call this function.
__device__ inline Squares sum_of(const ChunkRange& range, const Squares* of_chunks) {
  double weights = 0, directions = 0;
  for (int c = range.begin + static_cast<int>(threadIdx.x); c < range.end; c += static_cast<int>(blockDim.x)) {
    weights += of_chunks[c].weights;
    directions += of_chunks[c].directions;
  }
  return block_squares(weights, directions);
}

// Lowers a step of an optimizer with states that are factors of matrices.
Lowering lower_factored(const LowerContext& context, const Adafactor& rule);
// Lowers a step of an optimizer that orthogonalizes matrices.
Lowering lower_orthogonal(const LowerContext& context, const Muon& rule);

}  // namespace trainctl::cuda
