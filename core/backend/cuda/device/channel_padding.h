// Padding of rows of channels with zeros, and its removal.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// to[row, padded] = from[row, channels] and zeros behind them, in bfloat16 or float16.
void pad_channels(DType dtype, const void* from, std::int64_t rows, std::int64_t channels, std::int64_t padded,
                  void* to, cudaStream_t stream);

// to[i] (+)= the first `kept` of each `whole` neighbouring values, `count` in all.
void keep_first(const float* from, std::int64_t whole, std::int64_t kept, std::int64_t count, bool accumulate,
                float* to, cudaStream_t stream);

}  // namespace trainctl::cuda
