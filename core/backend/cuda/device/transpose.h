// Transposes matrices, which converts kernels of convolutions between their logical layout and cuDNN's.
//
// [height, width, in, out] as a matrix of height * width * in rows and `out` columns is the transpose of [out, height,
// width, in].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// Sets to[c, r] to from[r, c], or adds it to to[c, r] with `accumulate`. `from` is row-major [rows, columns]. The
// dtypes are float32, bfloat16 or float16, and at least one of them is float32.
void transpose(DType from_dtype, const void* from, std::int64_t rows, std::int64_t columns, DType to_dtype, void* to,
               bool accumulate, cudaStream_t stream);

}  // namespace trainctl::cuda
