// Sums of columns: blocks sum stripes of rows, then one pass adds the stripes in order.
#include "core/backend/cuda/elementwise.h"
#include "core/backend/cuda/grid.h"

namespace trainctl::cuda {
namespace {

constexpr int warp = 32;
constexpr int rows_at_once = block_threads / warp;

std::int64_t stripes_of(std::int64_t rows) { return std::clamp<std::int64_t>(rows / 256, 1, 128); }

// Block (x, y): 32 columns from 32 x, the rows of stripe y. Writes partial[stripe][column].
template <class T>
__global__ void sum_stripes(const T* x, std::int64_t rows, std::int64_t columns, float* partial) {
  __shared__ float sums[rows_at_once][warp];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp + threadIdx.x % warp;
  const int lane = threadIdx.x / warp;
  const std::int64_t stripe = blockIdx.y, stripes = gridDim.y;
  const std::int64_t begin = rows * stripe / stripes, end = rows * (stripe + 1) / stripes;
  float sum = 0;
  if (column < columns) {
    for (std::int64_t row = begin + lane; row < end; row += rows_at_once) sum += load(x[row * columns + column]);
  }
  sums[lane][threadIdx.x % warp] = sum;
  __syncthreads();
  if (lane != 0 || column >= columns) return;
  for (int i = 1; i < rows_at_once; ++i) sum += sums[i][threadIdx.x];
  partial[stripe * columns + column] = sum;
}

__global__ void add_stripes(const float* partial, std::int64_t stripes, std::int64_t columns, bool accumulate,
                            float* sums) {
  for (std::int64_t column = first_element(); column < columns; column += element_stride()) {
    float sum = accumulate ? sums[column] : 0.0f;
    for (std::int64_t stripe = 0; stripe < stripes; ++stripe) sum += partial[stripe * columns + column];
    sums[column] = sum;
  }
}

}  // namespace

std::int64_t column_sums_workspace(std::int64_t rows, std::int64_t columns) {
  return stripes_of(rows) * columns * size_of(DType::float32);
}

void column_sums(DType dtype, const void* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums,
                 void* workspace, cudaStream_t stream) {
  const std::int64_t stripes = stripes_of(rows);
  auto* partial = static_cast<float*>(workspace);
  const dim3 grid(static_cast<unsigned>((columns + warp - 1) / warp), static_cast<unsigned>(stripes));
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(sum_stripes<T>, grid, block_threads, stream, static_cast<const T*>(x), rows, columns, partial);
  });
  launch(add_stripes, blocks_for(columns), block_threads, stream, partial, stripes, columns, accumulate, sums);
}

}  // namespace trainctl::cuda
