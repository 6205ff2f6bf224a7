// Pads rows of channels with zeros, and removes the padding.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// to[row, padded] = from[row, channels], followed by zeros, in bfloat16 or float16.
void pad_channels(DType dtype, const void* from, std::int64_t rows, std::int64_t channels, std::int64_t padded,
                  void* to, cudaStream_t stream);

// Divides `from` into groups of `whole` values, and copies the first `kept` values of each group to `to`, until `to`
// has `count` values. With `accumulate`, adds them to the values in `to`.
void keep_first(const float* from, std::int64_t whole, std::int64_t kept, std::int64_t count, bool accumulate,
                float* to, cudaStream_t stream);

}  // namespace trainctl::cuda
