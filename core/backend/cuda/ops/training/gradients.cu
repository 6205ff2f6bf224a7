// Centralization and clipping of the gradients of single parameters.
#include "core/graph/ops/training/gradients.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

constexpr int gradient_columns = 32;
constexpr int gradient_rows = block_threads / gradient_columns;
constexpr std::int64_t clip_chunk = 1 << 14;  // elements of a block that clips by norm

// Up to 32 columns of a matrix, which one block centralizes.
struct CentralizedColumns {
  std::int64_t offset = 0;  // the first element of the first column
  std::int64_t rows = 0, stride = 0;
  int count = 0;
};

// Each thread adds every eighth row of one column; the sums of the eight threads of a column are added in order.
__global__ void centralize_gradients(const CentralizedColumns* all, float* region) {
  __shared__ double sums[gradient_rows][gradient_columns];
  const CentralizedColumns columns = all[blockIdx.x];
  const int column = static_cast<int>(threadIdx.x) % gradient_columns,
            group = static_cast<int>(threadIdx.x) / gradient_columns;
  float* values = region + columns.offset + column;
  double sum = 0;
  if (column < columns.count) {
    for (std::int64_t r = group; r < columns.rows; r += gradient_rows) sum += values[r * columns.stride];
  }
  sums[group][column] = sum;
  __syncthreads();
  if (column >= columns.count) return;
  double mean = 0;
  for (int g = 0; g < gradient_rows; ++g) mean += sums[g][column];
  mean /= static_cast<double>(columns.rows);
  for (std::int64_t r = group; r < columns.rows; r += gradient_rows) {
    values[r * columns.stride] = static_cast<float>(values[r * columns.stride] - mean);
  }
}

// A part of a gradient, and the numbers of the first and the last part of that gradient.
struct GradientPart {
  std::int64_t offset = 0, count = 0;
  int first = 0, end = 0;
};

// Each block adds the squares of one part.
__global__ void part_squares(const GradientPart* parts, const float* region, double* sums) {
  const GradientPart part = parts[blockIdx.x];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < part.count; i += blockDim.x) {
    const double value = region[part.offset + i];
    sum += value * value;
  }
  __shared__ double shared[gradient_columns];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Each block multiplies one part, if the norm of the whole gradient is too large.
__global__ void clip_to_norm(const GradientPart* parts, const double* sums, float norm, const float* count,
                             float* region) {
  if (!(*count > 0)) return;
  const GradientPart part = parts[blockIdx.x];
  double sum = 0;
  for (int p = part.first + static_cast<int>(threadIdx.x); p < part.end; p += static_cast<int>(blockDim.x)) {
    sum += sums[p];
  }
  __shared__ double shared[gradient_columns];
  const auto own = static_cast<float>(sqrt(block_sum(sum, shared)) / *count);
  if (!(own > norm)) return;
  const float factor = norm / own;
  for (std::int64_t i = threadIdx.x; i < part.count; i += blockDim.x) region[part.offset + i] *= factor;
}

// Each block clips the elements of one part.
__global__ void clip_to_value(const GradientPart* parts, float value, const float* count, float* region) {
  if (!(*count > 0)) return;
  const GradientPart part = parts[blockIdx.x];
  const float bound = value * *count;
  for (std::int64_t i = threadIdx.x; i < part.count; i += blockDim.x) {
    const float x = region[part.offset + i];
    region[part.offset + i] = x > bound ? bound : x < -bound ? -bound : x;
  }
}

// Makes the output, which may be the input, a copy of the input.
float* copied_gradients(const Buffers& p, std::int64_t bytes) {
  auto* to = p.out<float>(0);
  if (p.in<float>(0) != to) {
    check(cudaMemcpyAsync(to, p.in<float>(0), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, p.stream),
          "cudaMemcpyAsync");
  }
  return to;
}

std::vector<GradientPart> gradient_parts(const std::vector<GradientMatrix>& matrices) {
  std::vector<GradientPart> parts;
  for (const GradientMatrix& matrix : matrices) {
    const auto first = static_cast<int>(parts.size());
    const auto end = first + static_cast<int>(divide_up(matrix.count(), clip_chunk));
    for (std::int64_t at = 0; at < matrix.count(); at += clip_chunk) {
      parts.push_back({matrix.offset + at, std::min(clip_chunk, matrix.count() - at), first, end});
    }
  }
  return parts;
}

}  // namespace

Lowering lower_centralize_gradients(const LowerContext& context) {
  std::vector<CentralizedColumns> list;
  for (const GradientMatrix& matrix : context.op.as<CentralizeGradients>().matrices) {
    for (std::int64_t c = 0; c < matrix.columns; c += gradient_columns) {
      const auto count = static_cast<int>(std::min<std::int64_t>(gradient_columns, matrix.columns - c));
      list.push_back({matrix.offset + c, matrix.rows, matrix.columns, count});
    }
  }
  const std::int64_t bytes = context.output(0).bytes();
  return own_kernel(context, [bytes, blocks = static_cast<int>(list.size()), all = on_device(list)](const Buffers& p) {
    float* region = copied_gradients(p, bytes);
    if (blocks > 0) launch(centralize_gradients, blocks, block_threads, p.stream, all.get(), region);
  });
}

Lowering lower_clip_gradients(const LowerContext& context) {
  const auto& op = context.op.as<ClipGradients>();
  const std::vector<GradientPart> list = gradient_parts(op.matrices);
  const std::int64_t bytes = context.output(0).bytes();
  const auto blocks = static_cast<int>(list.size());
  return own_kernel(
      context,
      [=, norm = op.norm, value = op.value, parts = on_device(list)](const Buffers& p) {
        float* region = copied_gradients(p, bytes);
        if (blocks == 0) return;
        const float* count = p.in<float>(1);
        if (value > 0) {
          launch(clip_to_value, blocks, block_threads, p.stream, parts.get(), value, count, region);
        }
        if (!(norm > 0)) return;
        auto* sums = p.workspace<double>();
        launch(part_squares, blocks, block_threads, p.stream, parts.get(), region, sums);
        launch(clip_to_norm, blocks, block_threads, p.stream, parts.get(), sums, norm, count, region);
      },
      blocks * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace trainctl::cuda
