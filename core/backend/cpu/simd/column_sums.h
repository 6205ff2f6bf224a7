// Sums over the rows of a matrix: the gradient of a bias.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl::cpu {

// Bytes of scratch memory that column_sums() needs.
std::int64_t column_sums_workspace(std::int64_t rows, std::int64_t columns);

// Sets sums[c] to the sum of x[r * columns + c] over all rows r, or adds it to sums[c] with `accumulate`. x is float32
// or bfloat16. The order of the additions depends only on the shape.
void column_sums(DType dtype, const void* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums,
                 void* workspace);

}  // namespace trainctl::cpu
