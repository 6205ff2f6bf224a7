// The chunk that one thread block of an optimizer kernel updates: a range of the flat regions, or a tile of a parameter
// with a transposed compute copy.
#pragma once

#include <span>
#include <vector>

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/lower.h"
#include "core/graph/ops/optimizers/optimizers.h"

namespace trainctl::cuda {

inline constexpr int tile_side = 64;
inline constexpr int chunk_size = tile_side * tile_side;

// Rows of elements in the flat regions. Compute copies have the dtype `copy_dtype`; the address of a missing copy is
// null.
struct Chunk {
  std::int64_t begin;       // offset of the first row
  std::int64_t row_stride;  // number of elements from the start of a row to the next
  int rows, columns;
  float decay;
  DType copy_dtype;
  std::byte* copy;           // address of the first row's first element in a copy with the layout of the regions
  std::byte* transposed;     // address of the first row's first element in a transposed copy
  std::int64_t copy_stride;  // number of elements from the start of a column to the next in the transposed copy
};

// The chunks [begin, end) of a parameter, and whether the parameter is exempt from weight decay.
struct ChunkRange {
  int begin, end;
  bool no_decay;
};

// The chunks of all ranges; the chunks of range i end at ends[i]. `outputs` are the addresses of the op's outputs.
std::vector<Chunk> chunks_of(const OptimizerUpdate& update, std::span<const Address> outputs, std::vector<int>& ends);

// For each chunk, the chunks of the update range that it belongs to.
std::vector<ChunkRange> ranges_of_chunks(const OptimizerUpdate& update, const std::vector<int>& ends);

// Returns the lowering of an optimizer with the layouts that its compute copies must have.
Lowering with_copies(const LowerContext& context, Lowering lowering);

// Four neighbouring elements of a chunk's row. The elements in [from, to) belong to the chunk. The regions of the
// optimizer's states may be unaligned.
struct Vec4 {
  int row;
  std::int64_t row_begin, first;
  int from, to;

  __device__ Vec4(const Chunk& chunk, int at_row, int group)
      : row(at_row), row_begin(chunk.begin + at_row * chunk.row_stride), first((row_begin / 4 + group) * 4) {
    from = static_cast<int>(max(row_begin - first, std::int64_t{0}));
    to = static_cast<int>(min(row_begin + chunk.columns - first, std::int64_t{4}));
  }
  __device__ bool whole(const float* region) const { return from == 0 && to == 4 && is_aligned(region + first); }
  __device__ Pack<float, 4> read(const float* region) const {
    if (whole(region)) return pack_at<4>(region + first);
    Pack<float, 4> pack{};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= from && k < to) pack.values[k] = region[first + k];
    }
    return pack;
  }
  __device__ void write(const Pack<float, 4>& pack, float* region) const {
    if (whole(region)) {
      pack_at<4>(region + first) = pack;
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= from && k < to) region[first + k] = pack.values[k];
    }
  }
};

// Calls visit(vec4) for each Vec4 of the chunk; the threads of the block divide the work among themselves.
template <class Visit>
__device__ void each_vec4(const Chunk& chunk, const Visit& visit) {
  const int groups = chunk.columns / 4 + 2;  // number of groups that a row may overlap
  for (int i = static_cast<int>(threadIdx.x); i < chunk.rows * groups; i += static_cast<int>(blockDim.x)) {
    const Vec4 vec4(chunk, i / groups, i % groups);
    if (vec4.from < vec4.to) visit(vec4);
  }
}

using Tile = float[tile_side][tile_side + 1];  // one more column avoids bank conflicts

// Calls write(T*) with the copy's address as a pointer of the dtype's type.
template <class Write>
__device__ void with_copy(DType dtype, std::byte* copy, const Write& write) {
  if (dtype == DType::bfloat16) {
    write(reinterpret_cast<__nv_bfloat16*>(copy));
  } else if (dtype == DType::float16) {
    write(reinterpret_cast<__half*>(copy));
  } else {
    write(reinterpret_cast<float*>(copy));
  }
}

// Writes the elements to the copy; elements for the transposed copy go into the tile.
__device__ inline void write_copies(const Chunk& chunk, const Vec4& at, const Pack<float, 4>& values, Tile& tile) {
  if (chunk.copy != nullptr) {
    with_copy(chunk.copy_dtype, chunk.copy, [&](auto* copy) {
      using T = std::remove_pointer_t<decltype(copy)>;
      auto* to = copy + (at.first - chunk.begin);
      Pack<T, 4> pack;
#pragma unroll
      for (int k = 0; k < 4; ++k) pack.values[k] = store<T>(values.values[k]);
      if (at.from == 0 && at.to == 4 && reinterpret_cast<std::uintptr_t>(to) % sizeof(pack) == 0) {
        pack_at<4>(to) = pack;
        return;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k >= at.from && k < at.to) to[k] = pack.values[k];
      }
    });
  }
  if (chunk.transposed == nullptr) return;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= at.from && k < at.to) tile[at.row][at.first + k - at.row_begin] = values.values[k];
  }
}

// Writes the tile to the transposed copy. All threads of the block must call this function, after write_copies() for
// all of their elements.
__device__ inline void write_transposed(const Chunk& chunk, const Tile& tile) {
  if (chunk.transposed == nullptr) return;
  __syncthreads();
  with_copy(chunk.copy_dtype, chunk.transposed, [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    for (int i = static_cast<int>(threadIdx.x); i < chunk.columns * tile_side; i += static_cast<int>(blockDim.x)) {
      const int column = i / tile_side, row = i % tile_side;
      if (row < chunk.rows) to[column * chunk.copy_stride + row] = store<T>(tile[row][column]);
    }
  });
}

}  // namespace trainctl::cuda
