// Cumulative sums. A thread adds one column of a matrix [count, inner].
#include "core/graph/ops/cumsum.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/along_axis.h"

namespace trainctl::cuda {
namespace {

template <class T>
__global__ void add_columns(const T* x, T* y, AxisView view, bool reverse) {
  for (std::int64_t column = first_element(); column < view.outer * view.inner; column += element_stride()) {
    const std::int64_t first = column / view.inner * view.count * view.inner + column % view.inner;
    double sum = 0;
    for (std::int64_t i = 0; i < view.count; ++i) {
      const std::int64_t at = first + (reverse ? view.count - 1 - i : i) * view.inner;
      sum += static_cast<double>(load(x[at]));
      y[at] = store<T>(static_cast<float>(sum));
    }
  }
}

}  // namespace

Lowering lower_cumsum(const LowerContext& context) {
  const auto& def = context.op.as<CumulativeSum>();
  const AxisView view = view_along(context.input(0).shape, def.axis);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=, reverse = def.reverse](const Buffers& p) {
      launch(add_columns<T>, blocks_for(view.outer * view.inner), block_threads, p.stream, p.in<T>(0), p.out<T>(0),
             view, reverse);
    });
  });
}

}  // namespace trainctl::cuda
