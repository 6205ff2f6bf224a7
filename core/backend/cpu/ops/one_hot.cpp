// Writes class numbers as rows with one value for each class.
#include "core/graph/ops/one_hot.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {

Lowering lower_one_hot(const LowerContext& context) {
  const std::int64_t classes = context.op.as<OneHot>().classes, count = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    const auto* numbers = buffers.in<std::int32_t>(0);
    auto* rows = buffers.out<float>(0);
    std::fill_n(rows, count * classes, 0.0f);
    for (std::int64_t i = 0; i < count; ++i) {
      if (numbers[i] >= 0 && numbers[i] < classes) rows[i * classes + numbers[i]] = 1;
    }
  });
}

}  // namespace trainctl::cpu
