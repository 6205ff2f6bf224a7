// Cumulative sums, of some columns of a matrix [count, inner] at a time.
#include "core/graph/ops/cumsum.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/along_axis.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t most_columns = 64;

template <class T>
void add_columns(const T* x, T* y, const AxisView& view, bool reverse, std::int64_t columns) {
  double sums[most_columns] = {};
  for (std::int64_t i = 0; i < view.count; ++i) {
    const std::int64_t row = (reverse ? view.count - 1 - i : i) * view.inner;
    for (std::int64_t c = 0; c < columns; ++c) {
      sums[c] += static_cast<double>(load(x[row + c]));
      y[row + c] = store<T>(static_cast<float>(sums[c]));
    }
  }
}

}  // namespace

Lowering lower_cumsum(const LowerContext& context) {
  const auto& def = context.op.as<CumulativeSum>();
  const AxisView view = view_along(context.input(0).shape, def.axis);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [view, reverse = def.reverse](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      T* y = buffers.out<T>(0);
      const std::int64_t parts = divide_up(view.inner, most_columns);  // of the columns of a matrix
      const std::int64_t values = view.count * std::min(view.inner, most_columns);
      parallel_ranges(view.outer * parts, std::max<std::int64_t>(1, element_grain / values),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t part = begin; part < end; ++part) {
                          const std::int64_t first = part % parts * most_columns;
                          const std::int64_t at = part / parts * view.count * view.inner + first;
                          add_columns(x + at, y + at, view, reverse, std::min(most_columns, view.inner - first));
                        }
                      });
    });
  });
}

}  // namespace trainctl::cpu
