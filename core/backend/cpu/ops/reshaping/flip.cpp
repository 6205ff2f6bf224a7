// Copies elements in the opposite order along a dimension.
#include "core/graph/ops/reshaping/flip.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/along_axis.h"

namespace trainctl::cpu {

Lowering lower_flip(const LowerContext& context) {
  const AxisView view = view_along(context.input(0).shape, context.op.as<Flip>().axis);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [view](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      T* y = buffers.out<T>(0);
      const std::int64_t matrix = view.count * view.inner;
      parallel_ranges(view.outer, std::max<std::int64_t>(1, element_grain / matrix),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t o = begin; o < end; ++o) {
                          const T* from = x + o * matrix;
                          T* to = y + o * matrix;
                          if (view.inner == 1) {
                            std::reverse_copy(from, from + view.count, to);
                            continue;
                          }
                          for (std::int64_t i = 0; i < view.count; ++i) {
                            std::copy_n(from + (view.count - 1 - i) * view.inner, view.inner, to + i * view.inner);
                          }
                        }
                      });
    });
  });
}

}  // namespace trainctl::cpu
