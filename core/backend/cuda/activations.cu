// Activations and sums, element by element.
#include "core/backend/cuda/activation_math.h"
#include "core/backend/cuda/elementwise.h"
#include "core/backend/cuda/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// y[i] = of(i), eight neighbouring elements a thread.
template <class T, class Of>
__global__ void map(T* y, std::int64_t count, Of of) {
  constexpr int width = 16 / sizeof(T);
  const std::int64_t whole = count / width;
  for (std::int64_t group = first_element(); group < whole; group += element_stride()) {
    const std::int64_t first = group * width;
#pragma unroll
    for (int k = 0; k < width; ++k) y[first + k] = store<T>(of(first + k));
  }
  const std::int64_t rest = whole * width + first_element();
  if (rest < count) y[rest] = store<T>(of(rest));
}

template <class T, class Of>
void map_all(T* y, std::int64_t count, cudaStream_t stream, Of of) {
  launch(map<T, Of>, blocks_for(count, 16 / sizeof(T)), block_threads, stream, y, count, of);
}

template <class T>
struct Activated {
  const T* x;
  ActivationFunction function;
  __device__ float operator()(std::int64_t i) const { return value_of(function.kind, function.slope, load(x[i])); }
};

template <class T>
struct ActivatedSum {
  const T *a, *b;
  ActivationFunction function;
  __device__ float operator()(std::int64_t i) const {
    return value_of(function.kind, function.slope, load(a[i]) + load(b[i]));
  }
};

template <class T>
struct Gradient {
  const T *dy, *saved;
  ActivationFunction function;
  __device__ float operator()(std::int64_t i) const {
    return load(dy[i]) * derivative_of(function.kind, function.slope, load(saved[i]));
  }
};

}  // namespace

void activate(const ActivationFunction& function, DType dtype, void* y, std::int64_t count, cudaStream_t stream) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    auto* values = static_cast<T*>(y);
    map_all(values, count, stream, Activated<T>{values, function});
  });
}

void activation_gradient(const ActivationFunction& function, DType dtype, const void* dy, const void* saved, void* dx,
                         std::int64_t count, cudaStream_t stream) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    map_all(static_cast<T*>(dx), count, stream,
            Gradient<T>{static_cast<const T*>(dy), static_cast<const T*>(saved), function});
  });
}

Lowering lower_activation(const LowerContext& context) {
  const ActivationFunction function = context.op.as<Activation>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [function, count](const Places& p) {
      map_all(p.out<T>(0), count, p.stream, Activated<T>{p.in<T>(0), function});
    });
  });
}

Lowering lower_activation_grad(const LowerContext& context) {
  const ActivationFunction function = context.op.as<ActivationGrad>().function;
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [function, count, dtype = context.input(0).dtype](const Places& p) {
    activation_gradient(function, dtype, p.in<void>(0), p.in<void>(1), p.out<void>(0), count, p.stream);
  });
}

Lowering lower_add(const LowerContext& context) {
  const ActivationFunction function = context.op.as<Add>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [function, count](const Places& p) {
      map_all(p.out<T>(0), count, p.stream, ActivatedSum<T>{p.in<T>(0), p.in<T>(1), function});
    });
  });
}

}  // namespace trainctl::cuda
