// Activations and their gradients, and the sum of two tensors.
#include "core/graph/ops/elementwise/activations.h"

#include <type_traits>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/elementwise.h"
#include "core/backend/cpu/simd/narrowing.h"

namespace trainctl::cpu {
namespace {

template <class T>
void apply_gradient(const ActivationFunction& function, const T* dy, const T* saved, T* dx, std::int64_t count) {
  with_kind(function.kind, [&](auto kind) {
    const float slope = function.slope;
    parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
      simd([=]() TRAINCTL_INLINE {
        store_each(dx, begin, end, [=](std::int64_t i) TRAINCTL_INLINE {
          return load(dy[i]) * derivative<decltype(kind)::value>(load(saved[i]), slope);
        });
      });
    });
  });
}

// y[i] = f(value(i)), where operand(buffers) returns value, a function of the element's index.
template <class T, class Operand>
Lowering lower_activated(const LowerContext& context, const ActivationFunction& function, Operand operand) {
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    const auto value = operand(buffers);
    T* y = buffers.out<T>(0);
    const float slope = function.slope;
    with_kind(function.kind, [=](auto kind) {
      parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          store_each(y, begin, end,
                     [=](std::int64_t i) TRAINCTL_INLINE { return activate<decltype(kind)::value>(value(i), slope); });
        });
      });
    });
  });
}

}  // namespace

void activation_gradient(const ActivationFunction& function, DType dtype, const void* dy, const void* saved, void* dx,
                         std::int64_t count) {
  if (dtype == DType::float32) {
    apply_gradient(function, static_cast<const float*>(dy), static_cast<const float*>(saved), static_cast<float*>(dx),
                   count);
  } else {
    apply_gradient(function, static_cast<const Bf16*>(dy), static_cast<const Bf16*>(saved), static_cast<Bf16*>(dx),
                   count);
  }
}

Lowering lower_activation(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return lower_activated<T>(context, context.op.as<Activation>().function, [](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      return [x](std::int64_t i) TRAINCTL_INLINE { return load(x[i]); };
    });
  });
}

Lowering lower_activation_grad(const LowerContext& context) {
  const ActivationFunction function = context.op.as<ActivationGrad>().function;
  const std::int64_t count = context.output(0).shape.count();
  const DType dtype = context.input(0).dtype;
  return own_kernel(context, [=](const Buffers& buffers) {
    activation_gradient(function, dtype, buffers.in<void>(0), buffers.in<void>(1), buffers.out<void>(0), count);
  });
}

Lowering lower_add(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return lower_activated<T>(context, context.op.as<Add>().function, [](const Buffers& buffers) {
      const T* a = buffers.in<T>(0);
      const T* b = buffers.in<T>(1);
      return [a, b](std::int64_t i) TRAINCTL_INLINE { return load(a[i]) + load(b[i]); };
    });
  });
}

}  // namespace trainctl::cpu
