// Counts the bytes of text for which targets stand.
#include "core/graph/ops/metrics/token_bytes.h"

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {

Lowering lower_token_bytes(const LowerContext& context) {
  const auto& def = context.op.as<TokenBytes>();
  const std::int64_t count = context.input(0).shape.count(), rows_each = count / context.input(1).shape.count();
  return own_kernel(context, [=, table = def.bytes, add = def.accumulate](const Buffers& buffers) {
    const auto* targets = buffers.in<std::int32_t>(0);
    const auto* weights = buffers.in<float>(1);
    double sum = add ? static_cast<double>(*buffers.out<float>(0)) : 0.0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (targets[i] < 0 || targets[i] >= std::ssize(*table)) continue;
      sum += static_cast<double>(weights[i / rows_each]) * (*table)[static_cast<std::size_t>(targets[i])];
    }
    *buffers.out<float>(0) = static_cast<float>(sum);
  });
}

}  // namespace trainctl::cpu
