// Multiplication of a tensor by a scalar in GPU memory.
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

template <class T>
__global__ void scale(const T* x, const float* factor, T* y, std::int64_t count) {
  const float by = *factor;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) y[i] = store<T>(by * load(x[i]));
}

}  // namespace

Lowering lower_scale(const LowerContext& context) {
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [count](const Buffers& p) {
      launch(scale<T>, blocks_for(count), block_threads, p.stream, p.in<T>(0), p.in<float>(1), p.out<T>(0), count);
    });
  });
}

}  // namespace trainctl::cuda
