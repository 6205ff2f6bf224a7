// Copies elements in the opposite order along a dimension. A thread copies one element.
#include "core/graph/ops/reshaping/flip.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/along_axis.h"

namespace trainctl::cuda {
namespace {

template <class T>
__global__ void flip(const T* x, T* y, std::int64_t elements, AxisView view) {
  for (std::int64_t i = first_element(); i < elements; i += element_stride()) {
    const std::int64_t row = i / view.inner, at = row % view.count;
    y[i] = x[i + (view.count - 1 - 2 * at) * view.inner];
  }
}

}  // namespace

Lowering lower_flip(const LowerContext& context) {
  const AxisView view = view_along(context.input(0).shape, context.op.as<Flip>().axis);
  const std::int64_t elements = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(flip<T>, blocks_for(elements), block_threads, p.stream, p.in<T>(0), p.out<T>(0), elements, view);
    });
  });
}

}  // namespace trainctl::cuda
