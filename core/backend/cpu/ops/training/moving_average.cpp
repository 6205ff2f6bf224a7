// The moving average of the parameters.
#include "core/graph/ops/training/moving_average.h"

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cpu {

Lowering lower_moving_average(const LowerContext& context) {
  const auto& def = context.op.as<MovingAverage>();
  return own_kernel(
      context, [count = def.count, momentum = def.momentum, before = def.has_initial_values](const Buffers& buffers) {
        const bool applies = buffers.in<float>(2)[agree_not_finite] == 0 && std::isfinite(*buffers.in<float>(3));
        if (!applies) return;
        const float kept = *buffers.in<std::int64_t>(1) == 0 && !before ? 0.0f : momentum, added = 1.0f - kept;
        const float* const weights = buffers.in<float>(0);
        float* const averages = buffers.out<float>(0);
        parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
          simd([=]() TRAINCTL_INLINE {
            for (std::int64_t i = begin; i < end; ++i) averages[i] = kept * averages[i] + added * weights[i];
          });
        });
      });
}

}  // namespace trainctl::cpu
