// Biases behind convolutions and products that could not take them.
#include "core/backend/cuda/activation_math.h"
#include "core/backend/cuda/elementwise.h"
#include "core/backend/cuda/grid.h"

namespace trainctl::cuda {
namespace {

// y[row, c] = f(y[row, c] + bias[c]), as many neighbouring elements a thread as fit into 16 bytes.
template <class T>
__global__ void add_bias(T* y, const float* bias, std::int64_t count, std::int64_t channels,
                         ActivationFunction function) {
  constexpr int width = 16 / sizeof(T);
  for (std::int64_t first = first_element() * width; first < count; first += element_stride() * width) {
    std::int64_t channel = first % channels;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (first + k < count) {
        y[first + k] = store<T>(value_of(function.kind, function.slope, load(y[first + k]) + bias[channel]));
      }
      if (++channel == channels) channel = 0;
    }
  }
}

}  // namespace

void bias_activate(const ActivationFunction& function, DType dtype, void* y, const float* bias, std::int64_t rows,
                   std::int64_t channels, cudaStream_t stream) {
  const std::int64_t count = rows * channels;
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(add_bias<T>, blocks_for(count, 16 / sizeof(T)), block_threads, stream, static_cast<T*>(y), bias, count,
           channels, function);
  });
}

}  // namespace trainctl::cuda
