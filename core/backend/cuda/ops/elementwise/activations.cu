// Computes activations and sums, element by element.
#include "core/backend/cuda/device/activation_math.h"
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// y[i] = of(i); each thread computes packs of neighbouring elements.
template <class T, class Of>
__global__ void map(T* y, std::int64_t count, Of of) {
  constexpr int width = widest<T>;
  const std::int64_t whole = count / width;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    pack_at<width>(y + i * width) = of.template at<width>(i * width);
  }
  const std::int64_t rest = whole * width + first_element();
  if (rest < count) pack_at<1>(y + rest) = of.template at<1>(rest);
}

template <class T, class Of>
void map_all(T* y, std::int64_t count, cudaStream_t stream, Of of) {
  launch(map<T, Of>, blocks_for(count, widest<T>), block_threads, stream, y, count, of);
}

template <class T>
struct Activated {
  const T* x;
  ActivationFunction function;

  template <int width>
  __device__ Pack<T, width> at(std::int64_t first) const {
    Pack<T, width> pack = pack_at<width>(x + first);
#pragma unroll
    for (T& value : pack.values) value = store<T>(value_of(function.kind, function.slope, load(value)));
    return pack;
  }
};

template <class T>
struct ActivatedSum {
  const T *a, *b;
  ActivationFunction function;

  template <int width>
  __device__ Pack<T, width> at(std::int64_t first) const {
    Pack<T, width> pack = pack_at<width>(a + first);
    const Pack<T, width> other = pack_at<width>(b + first);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      pack.values[k] = store<T>(value_of(function.kind, function.slope, load(pack.values[k]) + load(other.values[k])));
    }
    return pack;
  }
};

template <class T>
struct Gradient {
  const T *dy, *saved;
  ActivationFunction function;

  template <int width>
  __device__ Pack<T, width> at(std::int64_t first) const {
    Pack<T, width> pack = pack_at<width>(dy + first);
    const Pack<T, width> by = pack_at<width>(saved + first);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      pack.values[k] =
          store<T>(load(pack.values[k]) * derivative_of(function.kind, function.slope, load(by.values[k])));
    }
    return pack;
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
    return own_kernel(context, [function, count](const Buffers& p) {
      map_all(p.out<T>(0), count, p.stream, Activated<T>{p.in<T>(0), function});
    });
  });
}

Lowering lower_activation_grad(const LowerContext& context) {
  const ActivationFunction function = context.op.as<ActivationGrad>().function;
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [function, count, dtype = context.input(0).dtype](const Buffers& p) {
    activation_gradient(function, dtype, p.in<void>(0), p.in<void>(1), p.out<void>(0), count, p.stream);
  });
}

Lowering lower_add(const LowerContext& context) {
  const ActivationFunction function = context.op.as<Add>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [function, count](const Buffers& p) {
      map_all(p.out<T>(0), count, p.stream, ActivatedSum<T>{p.in<T>(0), p.in<T>(1), function});
    });
  });
}

}  // namespace trainctl::cuda
