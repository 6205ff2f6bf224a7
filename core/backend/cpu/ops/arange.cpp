// Writes the numbers 0, 1, 2, ...
#include "core/graph/ops/arange.h"

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {

Lowering lower_arange(const LowerContext& context) {
  return own_kernel(context, [count = context.op.as<Arange>().count](const Buffers& buffers) {
    auto* y = buffers.out<float>(0);
    for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(i);
  });
}

}  // namespace trainctl::cpu
