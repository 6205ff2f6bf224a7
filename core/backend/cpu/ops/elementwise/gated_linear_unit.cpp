// Gated linear units and their gradients, element by element.
#include "core/graph/ops/elementwise/gated_linear_unit.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/elementwise.h"
#include "core/backend/cpu/simd/narrowing.h"

namespace trainctl::cpu {
namespace {

template <ActivationKind kind, class T>
void multiply(const T* gate, const T* up, T* y, float slope, std::int64_t count) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      store_each(y, begin, end,
                 [=](std::int64_t i) TRAINCTL_INLINE { return activate<kind>(load(gate[i]), slope) * load(up[i]); });
    });
  });
}

template <ActivationKind kind, class T>
void gradients(const T* dy, const T* gate, const T* up, T* dgate, T* dup, float slope, std::int64_t count) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float gradient = load(dy[i]), x = load(gate[i]), factor = load(up[i]), f = activate<kind>(x, slope);
        dgate[i] = store<T>(gradient * factor * derivative<kind>(gradient_uses_output(kind) ? f : x, slope));
        dup[i] = store<T>(gradient * f);
      }
    });
  });
}

}  // namespace

Lowering lower_gated_linear_unit(const LowerContext& context) {
  const ActivationFunction function = context.op.as<GatedLinearUnit>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T *gate = buffers.in<T>(0), *up = buffers.in<T>(1);
      with_kind(function.kind, [&](auto kind) {
        multiply<decltype(kind)::value>(gate, up, buffers.out<T>(0), function.slope, count);
      });
    });
  });
}

Lowering lower_gated_linear_unit_grad(const LowerContext& context) {
  const ActivationFunction function = context.op.as<GatedLinearUnitGrad>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T *dy = buffers.in<T>(0), *gate = buffers.in<T>(1), *up = buffers.in<T>(2);
      with_kind(function.kind, [&](auto kind) {
        gradients<decltype(kind)::value>(dy, gate, up, buffers.out<T>(0), buffers.out<T>(1), function.slope, count);
      });
    });
  });
}

}  // namespace trainctl::cpu
