// The emulated GPU's products of small matrices; replaces the header of this name that CUDA uses.
#pragma once

#include <bit>
#include <cstring>

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {

// Value `half` (0 or 1) of a pair, as a float.
template <class T>
float value_of(unsigned pair, int half) {
  return load(std::bit_cast<T>(static_cast<std::uint16_t>(pair >> 16 * half)));
}

template <class T>
void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  constexpr int lanes = 32, max_warps = 32;
  __shared__ unsigned all_a[max_warps][lanes][4], all_b[max_warps][lanes][2];
  const int lane = static_cast<int>(emulated::lane()), group = lane / 4, pair = lane % 4;
  const auto warp = threadIdx.x / lanes;
  std::memcpy(all_a[warp][lane], a, sizeof a);
  std::memcpy(all_b[warp][lane], b, sizeof b);
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    const int lower = i / 2, column = 2 * pair + i % 2;  // row group + 8 * lower of the sum
    for (int k = 0; k < 16; ++k) {
      const int right = k / 8, offset = k % 8 / 2;
      sum[i] += value_of<T>(all_a[warp][4 * group + offset][lower + 2 * right], k % 2) *
                value_of<T>(all_b[warp][4 * column + offset][right], k % 2);
    }
  }
  __syncwarp();
}

inline void read_transposed(const void* row, unsigned (&pairs)[4]) {
  const unsigned lane = emulated::lane();
  for (unsigned i = 0; i < 4; ++i) {
    std::uint16_t values[2];
    for (unsigned half = 0; half < 2; ++half) {
      const void* from = __shfl_sync(0xffffffffu, row, static_cast<int>(8 * i + 2 * (lane % 4) + half));
      require(reinterpret_cast<std::uintptr_t>(from) % 16 == 0, "rows of matrices at multiples of 16 bytes");
      std::memcpy(&values[half], static_cast<const std::uint16_t*>(from) + lane / 4, sizeof values[half]);
    }
    std::memcpy(&pairs[i], values, sizeof values);
  }
}

}  // namespace trainctl::cuda
