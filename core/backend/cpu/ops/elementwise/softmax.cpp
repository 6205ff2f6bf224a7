// Softmax over the last dimension, and its gradient.
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

// Calls body(begin, end) in parallel on ranges of the rows of [rows, n].
template <class Body>
void each_row(std::int64_t rows, std::int64_t n, const Body& body) {
  parallel_ranges(rows, std::max<std::int64_t>(1, element_grain / 4 / n), body);
}

}  // namespace

Lowering lower_softmax(const LowerContext& context) {
  const std::int64_t n = context.input(0).shape.back(), rows = context.input(0).shape.count() / n;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* from = buffers.in<T>(0);
      T* to = buffers.out<T>(0);
      each_row(rows, n, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* x = from + row * n;
            T* y = to + row * n;
            float top = load(x[0]);
            for (std::int64_t k = 1; k < n; ++k) top = load(x[k]) > top ? load(x[k]) : top;
            const auto term = [=](std::int64_t k) TRAINCTL_INLINE { return exp_approx(load(x[k]) - top); };
            const float scale = 1.0f / lane_sum<float>(n, term);
#pragma omp simd
            for (std::int64_t k = 0; k < n; ++k) y[k] = store<T>(exp_approx(load(x[k]) - top) * scale);
          }
        });
      });
    });
  });
}

Lowering lower_softmax_grad(const LowerContext& context) {
  const std::int64_t n = context.input(0).shape.back(), rows = context.input(0).shape.count() / n;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* gradient = buffers.in<T>(0);
      const T* result = buffers.in<T>(1);
      T* to = buffers.out<T>(0);
      each_row(rows, n, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* dy = gradient + row * n;
            const T* y = result + row * n;
            const auto product = [=](std::int64_t k) TRAINCTL_INLINE { return load(dy[k]) * load(y[k]); };
            const float sum = lane_sum<float>(n, product);
#pragma omp simd
            for (std::int64_t k = 0; k < n; ++k) to[row * n + k] = store<T>(load(y[k]) * (load(dy[k]) - sum));
          }
        });
      });
    });
  });
}

}  // namespace trainctl::cpu
