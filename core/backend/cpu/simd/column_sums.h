// Sums over the rows of a matrix: the gradient of a bias.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl::cpu {

// Bytes of scratch memory that column_sums() needs.
std::int64_t column_sums_workspace(std::int64_t rows, std::int64_t columns);

// sums[c] (+)= sum over rows r of x[r * columns + c], with x in float32 or bfloat16. The order of addition depends on
// the shape only.
void column_sums(DType dtype, const void* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums,
                 void* workspace);

}  // namespace trainctl::cpu
