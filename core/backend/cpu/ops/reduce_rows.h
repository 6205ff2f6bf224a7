// Reductions of rows, for kernels that compute several ops.
#pragma once

#include <cstdint>

#include "core/graph/ops/reduce.h"

namespace trainctl::cpu {

// The most values of a row for which reduce_rows() computes what the op `reduce` does.
inline constexpr std::int64_t longest_reduced_row = 8192;

// Reduces each of `rows` rows of `count` values, float32 or bfloat16, to one value of y.
void reduce_rows(const Reduce& def, DType dtype, const void* x, std::int64_t rows, std::int64_t count, void* y);

}  // namespace trainctl::cpu
