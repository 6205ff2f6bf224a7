// Computes gated linear units and their gradients, element by element.
#include "core/graph/ops/elementwise/gated_linear_unit.h"

#include "core/backend/cuda/device/activation_math.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// Computes `width` neighbouring elements of y; y may be gate or up.
template <int width, class T>
__device__ void multiply(const T* gate, const T* up, T* y, const ActivationFunction& function) {
  Pack<T, width> pack = pack_at<width>(gate);
  const Pack<T, width> factors = pack_at<width>(up);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    pack.values[k] = store<T>(value_of(function.kind, function.slope, load(pack.values[k])) * load(factors.values[k]));
  }
  pack_at<width>(y) = pack;
}

// Each thread computes packs of neighbouring elements.
template <class T>
__global__ void gated_linear_unit(const T* gate, const T* up, T* y, std::int64_t count, ActivationFunction function) {
  constexpr int width = widest<T>;
  const std::int64_t whole = count / width;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    multiply<width>(gate + i * width, up + i * width, y + i * width, function);
  }
  const std::int64_t rest = whole * width + first_element();
  if (rest < count) multiply<1>(gate + rest, up + rest, y + rest, function);
}

template <class T>
struct Gradients {
  const T *dy, *gate, *up;
  T *dgate, *dup;
  ActivationFunction function;

  // Computes the gradients of `width` neighbouring elements; the outputs may be any of the inputs.
  template <int width>
  __device__ void at(std::int64_t first) const {
    Pack<T, width> to_gate = pack_at<width>(dy + first), to_up = pack_at<width>(gate + first);
    const Pack<T, width> factors = pack_at<width>(up + first);
    const bool uses_output = gradient_uses_output(function.kind);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float gradient = load(to_gate.values[k]), x = load(to_up.values[k]);
      const float f = value_of(function.kind, function.slope, x);
      const float slope = derivative_of(function.kind, function.slope, uses_output ? f : x);
      to_gate.values[k] = store<T>(gradient * load(factors.values[k]) * slope);
      to_up.values[k] = store<T>(gradient * f);
    }
    pack_at<width>(dgate + first) = to_gate;
    pack_at<width>(dup + first) = to_up;
  }
};

template <class T>
__global__ void gated_linear_unit_gradient(Gradients<T> gradients, std::int64_t count) {
  constexpr int width = widest<T>;
  const std::int64_t whole = count / width;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) gradients.template at<width>(i * width);
  const std::int64_t rest = whole * width + first_element();
  if (rest < count) gradients.template at<1>(rest);
}

}  // namespace

Lowering lower_gated_linear_unit(const LowerContext& context) {
  const ActivationFunction function = context.op.as<GatedLinearUnit>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(gated_linear_unit<T>, blocks_for(count, widest<T>), block_threads, p.stream, p.in<T>(0), p.in<T>(1),
             p.out<T>(0), count, function);
    });
  });
}

Lowering lower_gated_linear_unit_grad(const LowerContext& context) {
  const ActivationFunction function = context.op.as<GatedLinearUnitGrad>().function;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      const Gradients<T> gradients{p.in<T>(0), p.in<T>(1), p.in<T>(2), p.out<T>(0), p.out<T>(1), function};
      launch(gated_linear_unit_gradient<T>, blocks_for(count, widest<T>), block_threads, p.stream, gradients, count);
    });
  });
}

}  // namespace trainctl::cuda
