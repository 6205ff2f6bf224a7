// Adds biases after convolutions and products with which the library did not fuse them.
#include "core/backend/cuda/device/activation_math.h"
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/device/pack.h"

namespace trainctl::cuda {
namespace {

// y[row, c] = f(y[row, c] + bias[c]); each thread computes packs of neighbouring channels.
template <class T, int width>
__global__ void add_bias(T* y, const float* bias, std::uint32_t packs, std::uint32_t packs_in_row,
                         ActivationFunction function) {
  for (std::int64_t i = first_element(); i < packs; i += element_stride()) {
    const float* biases = bias + static_cast<std::uint32_t>(i) % packs_in_row * width;
    Pack<T, width> pack = pack_at<width>(y + i * width);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      pack.values[k] = store<T>(value_of(function.kind, function.slope, load(pack.values[k]) + biases[k]));
    }
    pack_at<width>(y + i * width) = pack;
  }
}

}  // namespace

void bias_activate(const ActivationFunction& function, DType dtype, void* y, const float* bias, std::int64_t rows,
                   std::int64_t channels, cudaStream_t stream) {
  with_packs(dtype, channels, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const std::int64_t packs = rows * channels / width;
    launch(add_bias<T, width>, blocks_for(packs), block_threads, stream, static_cast<T*>(y), bias, narrow(packs),
           narrow(channels / width), function);
  });
}

}  // namespace trainctl::cuda
