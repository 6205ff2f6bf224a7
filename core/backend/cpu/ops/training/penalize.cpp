// Adds the gradients of L1 and L2 penalties to the gradients of parameters.
#include "core/graph/ops/training/penalize.h"

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {

Lowering lower_penalize(const LowerContext& context) {
  const Penalty penalty = context.op.as<Penalize>().penalty;
  const std::int64_t count = context.input(0).shape.count();
  const bool scales = context.op.inputs.size() > 2;
  return own_kernel(context, [=](const Buffers& buffers) {
    const float* w = buffers.in<float>(0);
    float* dw = buffers.out<float>(0);
    const float factor = *buffers.in<float>(1) * (scales ? *buffers.in<float>(2) : 1.0f);
    const float linear = factor * penalty.l1, square = 2 * factor * penalty.l2;
    parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
      simd([=]() TRAINCTL_INLINE {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          dw[i] += square * w[i] + (w[i] > 0 ? linear : w[i] < 0 ? -linear : 0.0f);
        }
      });
    });
  });
}

}  // namespace trainctl::cpu
