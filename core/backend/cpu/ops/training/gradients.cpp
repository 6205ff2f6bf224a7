// Centralization and clipping of the gradients of single parameters.
#include "core/graph/ops/training/gradients.h"

#include <algorithm>
#include <cmath>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t centralized_columns = 64;   // columns that a thread centralizes at a time
constexpr std::int64_t norm_part = element_grain;  // elements of a partial sum of squares

// Subtracts their means from the columns [begin, end) of a matrix; at most centralized_columns columns.
void centralize_columns(float* matrix, std::int64_t rows, std::int64_t columns, std::int64_t begin, std::int64_t end) {
  double means[centralized_columns] = {};
  const std::int64_t width = end - begin;
  simd([=, &means]() TRAINCTL_INLINE {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* row = matrix + r * columns + begin;
      for (std::int64_t c = 0; c < width; ++c) means[c] += row[c];
    }
    for (std::int64_t c = 0; c < width; ++c) means[c] /= static_cast<double>(rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = matrix + r * columns + begin;
      for (std::int64_t c = 0; c < width; ++c) row[c] = static_cast<float>(row[c] - means[c]);
    }
  });
}

// The sum of squares, in float64. The partial sums of chunks are added in order, so that the sum has the same bits for
// any number of threads.
double squares_in_parts(const float* values, std::int64_t count, double* sums) {
  const std::int64_t chunks = divide_up(count, norm_part);
  parallel_ranges(chunks, 1, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t c = begin; c < end; ++c) {
        const float* chunk = values + c * norm_part;
        const auto square = [=](std::int64_t i) TRAINCTL_INLINE { return static_cast<double>(chunk[i]) * chunk[i]; };
        sums[c] = lane_sum<double>(std::min(norm_part, count - c * norm_part), square);
      }
    });
  });
  double sum = 0;
  for (std::int64_t c = 0; c < chunks; ++c) sum += sums[c];
  return sum;
}

void scale_gradient(float* values, std::int64_t count, float factor) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t i = begin; i < end; ++i) values[i] *= factor;
    });
  });
}

void limit_gradient(float* values, std::int64_t count, float bound) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t i = begin; i < end; ++i) {
        values[i] = values[i] > bound ? bound : values[i] < -bound ? -bound : values[i];
      }
    });
  });
}

// Makes the output, which may be the input, a copy of the input.
float* copied_gradients(const Buffers& buffers, std::int64_t count) {
  const auto* from = buffers.in<float>(0);
  auto* to = buffers.out<float>(0);
  if (from != to) std::copy_n(from, count, to);
  return to;
}

}  // namespace

Lowering lower_centralize_gradients(const LowerContext& context) {
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [count, all = context.op.as<CentralizeGradients>().matrices](const Buffers& buffers) {
    float* region = copied_gradients(buffers, count);
    for (const GradientMatrix& matrix : all) {
      parallel_ranges(divide_up(matrix.columns, centralized_columns), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
          centralize_columns(region + matrix.offset, matrix.rows, matrix.columns, b * centralized_columns,
                             std::min(matrix.columns, (b + 1) * centralized_columns));
        }
      });
    }
  });
}

Lowering lower_clip_gradients(const LowerContext& context) {
  const auto& op = context.op.as<ClipGradients>();
  const std::int64_t size = context.output(0).shape.count();
  std::int64_t chunks = 0;
  for (const GradientMatrix& matrix : op.matrices) chunks = std::max(chunks, divide_up(matrix.count(), norm_part));
  return own_kernel(
      context,
      [size, all = op.matrices, norm = op.norm, value = op.value](const Buffers& buffers) {
        float* region = copied_gradients(buffers, size);
        const float count = *buffers.in<float>(1);
        if (!(count > 0)) return;
        for (const GradientMatrix& matrix : all) {
          float* gradient = region + matrix.offset;
          if (value > 0) limit_gradient(gradient, matrix.count(), value * count);
          if (!(norm > 0)) continue;
          const double squares = squares_in_parts(gradient, matrix.count(), buffers.workspace<double>());
          const auto own = static_cast<float>(std::sqrt(squares) / static_cast<double>(count));
          if (own > norm) scale_gradient(gradient, matrix.count(), norm / own);
        }
      },
      chunks * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace trainctl::cpu
