// Transposes matrices in tiles of 32 x 32 through shared memory.
#include "core/backend/cuda/device/transpose.h"

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {
namespace {

constexpr int tile = 32;
constexpr int rows_at_once = block_threads / tile;
constexpr std::int64_t max_blocks = 65535;  // maximum number of blocks in the grid's y dimension

template <class From, class To>
__global__ void transpose_tiles(const From* from, std::int64_t rows, std::int64_t columns, To* to, bool accumulate) {
  __shared__ float values[tile][tile + 1];  // one more column avoids bank conflicts
  const int lane = threadIdx.x % tile, line = threadIdx.x / tile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * tile;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * tile; row < rows;
       row += static_cast<std::int64_t>(gridDim.y) * tile) {
    if (column + lane < columns) {
      for (int i = line; i < tile && row + i < rows; i += rows_at_once) {
        values[i][lane] = load(from[(row + i) * columns + column + lane]);
      }
    }
    __syncthreads();
    if (row + lane < rows) {
      for (int i = line; i < tile && column + i < columns; i += rows_at_once) {
        To& target = to[(column + i) * rows + row + lane];
        target = store<To>(accumulate ? load(target) + values[lane][i] : values[lane][i]);
      }
    }
    __syncthreads();
  }
}

}  // namespace

void transpose(DType from_dtype, const void* from, std::int64_t rows, std::int64_t columns, DType to_dtype, void* to,
               bool accumulate, cudaStream_t stream) {
  const auto tiles = [](std::int64_t count) { return (count + tile - 1) / tile; };
  const dim3 grid(static_cast<unsigned>(tiles(columns)),
                  static_cast<unsigned>(std::min<std::int64_t>(tiles(rows), max_blocks)));
  const auto run = [&](auto source, auto target) {
    using From = decltype(source);
    using To = decltype(target);
    launch(transpose_tiles<From, To>, grid, block_threads, stream, static_cast<const From*>(from), rows, columns,
           static_cast<To*>(to), accumulate);
  };
  if (to_dtype == DType::float32) return with_type(from_dtype, [&](auto source) { run(source, float{}); });
  require(from_dtype == DType::float32, "a transposition neither reads nor writes float32");
  with_type(to_dtype, [&](auto target) { run(float{}, target); });
}

}  // namespace trainctl::cuda
