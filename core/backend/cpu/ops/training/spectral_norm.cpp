// Spectral normalisation of a kernel.
#include "core/graph/ops/training/spectral_norm.h"

#include <algorithm>
#include <cmath>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t block_columns = 64;  // columns that a thread adds at a time

// y [rows] = W x, for W [rows, columns].
void multiply_rows(const float* w, std::int64_t rows, std::int64_t columns, const double* x, double* y) {
  parallel_ranges(rows, divide_up(element_grain, columns), [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t r = begin; r < end; ++r) {
        const float* row = w + r * columns;
        y[r] = lane_sum<double>(columns, [=](std::int64_t c) TRAINCTL_INLINE { return row[c] * x[c]; });
      }
    });
  });
}

// y [columns] = x W, for W [rows, columns].
void multiply_columns(const float* w, std::int64_t rows, std::int64_t columns, const double* x, double* y) {
  parallel_ranges(divide_up(columns, block_columns), 1, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t block = begin; block < end; ++block) {
        double sums[block_columns] = {};
        const std::int64_t first = block * block_columns, width = std::min(block_columns, columns - first);
        for (std::int64_t r = 0; r < rows; ++r) {
          const float* row = w + r * columns + first;
          for (std::int64_t c = 0; c < width; ++c) sums[c] += x[r] * row[c];
        }
        std::copy_n(sums, width, y + first);
      }
    });
  });
}

// Divides x by its norm, and returns the norm.
double divide_by_norm(double* x, std::int64_t count) {
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) squares += x[i] * x[i];
  const double norm = std::sqrt(squares), factor = 1 / std::max(norm, SpectralNorm::least_norm);
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
  return norm * factor * norm;  // x before the division times x after it
}

}  // namespace

Lowering lower_spectral_norm(const LowerContext& context) {
  const Shape& shape = context.output(0).shape;
  const std::int64_t count = shape.count(), columns = shape.back(), rows = count / columns;
  return own_kernel(
      context,
      [=, iterations = context.op.as<SpectralNorm>().iterations](const Buffers& buffers) {
        const float *w = buffers.in<float>(0), *before = buffers.in<float>(1);
        double *u = buffers.workspace<double>(), *v = u + columns;
        std::copy_n(before, columns, u);
        double sigma = 0;
        for (int i = 0; i < iterations; ++i) {
          multiply_rows(w, rows, columns, u, v);
          divide_by_norm(v, rows);
          multiply_columns(w, rows, columns, v, u);
          sigma = divide_by_norm(u, columns);
        }
        if (sigma == 0) {
          sigma = 1;
          std::copy_n(before, columns, u);
        }
        std::copy_n(u, columns, buffers.out<float>(1));
        float* to = buffers.out<float>(0);
        parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
          simd([=]() TRAINCTL_INLINE {
            for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(w[i] / sigma);
          });
        });
      },
      (rows + columns) * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace trainctl::cpu
