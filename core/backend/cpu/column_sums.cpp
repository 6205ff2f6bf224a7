// Sums over the rows of a matrix, a tile of columns at a time.
#include "core/backend/cpu/column_sums.h"

#include "core/backend/cpu/parallel.h"
#include "core/backend/cpu/simd.h"

namespace trainctl::cpu {
namespace {

constexpr int tile = 64;

// One tile. Rows are summed in blocks, so that the rounding error grows with the block's length and their number only.
template <class T>
void sum_tile(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t width, bool accumulate, float* sums) {
  simd([=]() TRAINCTL_INLINE {
    constexpr std::int64_t block = 512;
    float total[tile] = {};
    for (std::int64_t start = 0; start < rows; start += block) {
      const std::int64_t end = std::min(start + block, rows);
      float part[tile] = {};
      if (width == tile) {
        for (std::int64_t row = start; row < end; ++row) {
#pragma omp simd
          for (int c = 0; c < tile; ++c) part[c] += load(x[row * columns + c]);
        }
      } else {
        for (std::int64_t row = start; row < end; ++row) {
#pragma omp simd
          for (std::int64_t c = 0; c < width; ++c) part[c] += load(x[row * columns + c]);
        }
      }
      for (int c = 0; c < tile; ++c) total[c] += part[c];
    }
    for (std::int64_t c = 0; c < width; ++c) sums[c] = accumulate ? sums[c] + total[c] : total[c];
  });
}

template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums) {
  const std::int64_t grain =
      std::max<std::int64_t>(tile, element_grain / std::max<std::int64_t>(rows, 1) / tile * tile);
  parallel_ranges(columns, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; c += tile) {
      sum_tile(x + c, rows, columns, std::min<std::int64_t>(tile, end - c), accumulate, sums + c);
    }
  });
}

}  // namespace

void column_sums(DType dtype, const void* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums) {
  if (dtype == DType::float32) return sum_columns(static_cast<const float*>(x), rows, columns, accumulate, sums);
  sum_columns(static_cast<const Bf16*>(x), rows, columns, accumulate, sums);
}

}  // namespace trainctl::cpu
