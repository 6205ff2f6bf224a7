// Gives a tensor its earlier values if the step is skipped.
#include "core/graph/ops/training/restore.h"

#include <algorithm>
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cpu {

Lowering lower_restore(const LowerContext& context) {
  return own_kernel(context, [count = context.output(0).shape.count()](const Buffers& buffers) {
    if (buffers.in<float>(1)[agree_not_finite] == 0 && std::isfinite(*buffers.in<float>(2))) return;
    const float* const x = buffers.in<float>(0);
    float* const y = buffers.out<float>(0);
    parallel_ranges(count, element_grain,
                    [=](std::int64_t begin, std::int64_t end) { std::copy(x + begin, x + end, y + begin); });
  });
}

}  // namespace trainctl::cpu
