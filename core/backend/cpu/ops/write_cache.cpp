// Copies the rows of new positions into a cache.
#include "core/graph/ops/write_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {

Lowering lower_write_cache(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t row_bytes = x[2] * size_of(context.input(0).dtype);
  const std::int64_t positions = context.op.as<WriteCache>().positions;
  return own_kernel(context, [=, samples = x[0], steps = x[1]](const Buffers& buffers) {
    const auto* from = buffers.in<std::byte>(0);
    const auto* starts = buffers.in<std::int32_t>(1);
    auto* to = buffers.out<std::byte>(0);
    for (std::int64_t n = 0; n < samples; ++n) {
      const std::int64_t rows = std::min<std::int64_t>(steps, positions - starts[n]);
      if (rows <= 0) continue;
      std::memcpy(to + (n * positions + starts[n]) * row_bytes, from + n * steps * row_bytes,
                  static_cast<std::size_t>(rows * row_bytes));
    }
  });
}

}  // namespace trainctl::cpu
