// Spectral normalisation of a kernel in GPU memory.
#include "core/graph/ops/training/spectral_norm.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

constexpr int group_columns = 32;
constexpr int groups = block_threads / group_columns;

__global__ void widen(const float* from, double* to, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) to[i] = from[i];
}

// y [rows] = W x, for W [rows, columns]; each block computes one element at a time.
__global__ void multiply_rows(const float* w, std::int64_t rows, std::int64_t columns, const double* x, double* y) {
  __shared__ double shared[32];
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    double sum = 0;
    for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x) sum += w[r * columns + c] * x[c];
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) y[r] = sum;
  }
}

// y [columns] = x W, for W [rows, columns]. Each block computes 32 elements: each thread adds every eighth row of one
// column, and the sums of the eight threads of a column are added in order.
__global__ void multiply_columns(const float* w, std::int64_t rows, std::int64_t columns, const double* x, double* y) {
  __shared__ double sums[groups][group_columns];
  const int column = static_cast<int>(threadIdx.x) % group_columns,
            group = static_cast<int>(threadIdx.x) / group_columns;
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * group_columns + column;
  double sum = 0;
  if (c < columns) {
    for (std::int64_t r = group; r < rows; r += groups) sum += x[r] * w[r * columns + c];
  }
  sums[group][column] = sum;
  __syncthreads();
  if (group != 0 || c >= columns) return;
  for (int g = 1; g < groups; ++g) sum += sums[g][column];
  y[c] = sum;
}

// Divides x by its norm; *product becomes x before the division times x after it. For one block.
__global__ void divide_by_norm(double* x, std::int64_t count, double least, double* product) {
  __shared__ double shared[32];
  double squares = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) squares += x[i] * x[i];
  const double norm = sqrt(block_sum(squares, shared)), factor = 1 / (norm > least ? norm : least);
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) x[i] *= factor;
  if (threadIdx.x == 0) *product = norm * factor * norm;
}

__global__ void divide_kernel(const float* w, std::int64_t count, const double* sigma, float* to) {
  const double divisor = *sigma == 0 ? 1 : *sigma;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    to[i] = static_cast<float>(w[i] / divisor);
  }
}

__global__ void write_vector(const float* before, const double* u, std::int64_t count, const double* sigma, float* to) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    to[i] = *sigma == 0 ? before[i] : static_cast<float>(u[i]);
  }
}

}  // namespace

Lowering lower_spectral_norm(const LowerContext& context) {
  const Shape& shape = context.output(0).shape;
  const std::int64_t count = shape.count(), columns = shape.back(), rows = count / columns;
  const auto row_blocks = static_cast<int>(std::min<std::int64_t>(rows, 1 << 14));
  const auto column_blocks = static_cast<int>(divide_up(columns, group_columns));
  return own_kernel(
      context,
      [=, iterations = context.op.as<SpectralNorm>().iterations](const Buffers& p) {
        const float *w = p.in<float>(0), *before = p.in<float>(1);
        double *sigma = p.workspace<double>(), *u = sigma + 1, *v = u + columns;
        launch(widen, blocks_for(columns), block_threads, p.stream, before, u, columns);
        for (int i = 0; i < iterations; ++i) {
          launch(multiply_rows, row_blocks, block_threads, p.stream, w, rows, columns, u, v);
          launch(divide_by_norm, 1, block_threads, p.stream, v, rows, SpectralNorm::least_norm, sigma);
          launch(multiply_columns, column_blocks, block_threads, p.stream, w, rows, columns, v, u);
          launch(divide_by_norm, 1, block_threads, p.stream, u, columns, SpectralNorm::least_norm, sigma);
        }
        launch(write_vector, blocks_for(columns), block_threads, p.stream, before, u, columns, sigma, p.out<float>(1));
        launch(divide_kernel, blocks_for(count), block_threads, p.stream, w, count, sigma, p.out<float>(0));
      },
      (rows + columns + 1) * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace trainctl::cuda
