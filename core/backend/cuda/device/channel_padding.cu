// Pads rows of channels with zeros, and removes the padding. The rows belong to a convolution's kernel, which is small.
#include "core/backend/cuda/device/channel_padding.h"

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {
namespace {

template <class T>
__global__ void pad_rows(const T* __restrict__ from, std::int64_t count, std::int64_t channels, std::int64_t padded,
                         T* __restrict__ to) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t row = i / padded, channel = i % padded;
    to[i] = channel < channels ? from[row * channels + channel] : store<T>(0.0f);
  }
}

__global__ void keep_first_of_each(const float* __restrict__ from, std::int64_t whole, std::int64_t kept,
                                   std::int64_t count, bool accumulate, float* __restrict__ to) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const float value = from[i / kept * whole + i % kept];
    to[i] = accumulate ? to[i] + value : value;
  }
}

}  // namespace

void pad_channels(DType dtype, const void* from, std::int64_t rows, std::int64_t channels, std::int64_t padded,
                  void* to, cudaStream_t stream) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(pad_rows<T>, blocks_for(rows * padded), block_threads, stream, static_cast<const T*>(from), rows * padded,
           channels, padded, static_cast<T*>(to));
  });
}

void keep_first(const float* from, std::int64_t whole, std::int64_t kept, std::int64_t count, bool accumulate,
                float* to, cudaStream_t stream) {
  launch(keep_first_of_each, blocks_for(count), block_threads, stream, from, whole, kept, count, accumulate, to);
}

}  // namespace trainctl::cuda
