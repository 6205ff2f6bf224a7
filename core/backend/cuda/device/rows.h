// Grids over matrices [rows, values] in which a team of threads processes a row. A team is a warp if rows are short,
// else a block.
#pragma once

#include "core/backend/cuda/device/any_values.h"
#include "core/backend/cuda/device/pack.h"

namespace trainctl::cuda {

struct RowGrid {
  std::int64_t rows = 0;
  int values = 0;
  int team = 32;  // number of threads in a team
  int blocks = 1;

  RowGrid(std::int64_t row_count, std::int64_t value_count) : rows(row_count), values(static_cast<int>(value_count)) {
    require(value_count <= 1 << 30, "a row has more than 2^30 values");
    const bool many = rows >= 4096 && values <= 2048;  // enough to fill the GPU with warps
    if (values > 128 && !many) team = block_threads;
    blocks = blocks_for(rows * team);
  }
};

// A thread's work in its team. All threads of a team must process the same rows and make the same calls.
class RowTeam {
 public:
  __device__ explicit RowTeam(const RowGrid& grid)
      : grid_(grid),
        member_(static_cast<int>(threadIdx.x) % grid.team),
        team_(static_cast<int>(threadIdx.x) / grid.team) {}

  __device__ bool leads() const { return member_ == 0; }
  __device__ int member() const { return member_; }  // this thread's number in the team
  // The team's rows: first(), first() + step(), ...
  __device__ std::int64_t first() const { return static_cast<std::int64_t>(blockIdx.x) * teams() + team_; }
  __device__ std::int64_t step() const { return static_cast<std::int64_t>(gridDim.x) * teams(); }

  // Calls visit(k, x[k]) for the thread's share of a row's values.
  template <class T, class Visit>
  __device__ void each(const T* x, const Visit& visit) const {
    if (grid_.values % widest<T> == 0) {
      for (int k = member_ * widest<T>; k < grid_.values; k += grid_.team * widest<T>) {
        const Pack<T, widest<T>> pack = pack_at<widest<T>>(x + k);
#pragma unroll
        for (int i = 0; i < widest<T>; ++i) visit(k + i, load(pack.values[i]));
      }
    } else {
#pragma unroll 4
      for (int k = member_; k < grid_.values; k += grid_.team) visit(k, load(x[k]));
    }
  }
  // Writes y[k] = value(k) for the thread's share of a row's values.
  template <class T, class Value>
  __device__ void fill(T* y, const Value& value) const {
    if (grid_.values % widest<T> == 0) {
      for (int k = member_ * widest<T>; k < grid_.values; k += grid_.team * widest<T>) {
        Pack<T, widest<T>> pack;
#pragma unroll
        for (int i = 0; i < widest<T>; ++i) pack.values[i] = store<T>(value(k + i));
        pack_at<widest<T>>(y + k) = pack;
      }
    } else {
#pragma unroll 4
      for (int k = member_; k < grid_.values; k += grid_.team) y[k] = store<T>(value(k));
    }
  }
  // Writes y[k] = value(k, x[k]) for the thread's share of a row's values; y may be x.
  template <class T, class Value>
  __device__ void map(const T* x, T* y, const Value& value) const {
    if (grid_.values % widest<T> == 0) {
      for (int k = member_ * widest<T>; k < grid_.values; k += grid_.team * widest<T>) {
        Pack<T, widest<T>> pack = pack_at<widest<T>>(x + k);
#pragma unroll
        for (int i = 0; i < widest<T>; ++i) pack.values[i] = store<T>(value(k + i, load(pack.values[i])));
        pack_at<widest<T>>(y + k) = pack;
      }
    } else {
#pragma unroll 4
      for (int k = member_; k < grid_.values; k += grid_.team) y[k] = store<T>(value(k, load(x[k])));
    }
  }

  // The same for values of any dtype. A thread moves four values with one access.
  template <class Visit>
  __device__ void each(const AnyValues<const void>& x, const Visit& visit) const {
    packs([&]<int width>(int k) {
      const Pack<float, width> pack = x.template loaded<width>(k);
#pragma unroll
      for (int i = 0; i < width; ++i) visit(k + i, pack.values[i]);
    });
  }
  template <class Value>
  __device__ void fill(const AnyValues<void>& y, const Value& value) const {
    packs([&]<int width>(int k) {
      Pack<float, width> pack;
#pragma unroll
      for (int i = 0; i < width; ++i) pack.values[i] = value(k + i);
      y.save(k, pack);
    });
  }
  template <class Value>
  __device__ void map(const AnyValues<const void>& x, const AnyValues<void>& y, const Value& value) const {
    packs([&]<int width>(int k) {
      Pack<float, width> pack = x.template loaded<width>(k);
#pragma unroll
      for (int i = 0; i < width; ++i) pack.values[i] = value(k + i, pack.values[i]);
      y.save(k, pack);
    });
  }

  // Combine the values of the team's threads in a fixed order; all threads get the result.
  __device__ float sum(float value) const {
    return join(value, [](float a, float b) { return a + b; });
  }
  __device__ float largest(float value) const {  // ignores NaN
    return join(value, [](float a, float b) { return fmaxf(a, b); });
  }
  __device__ int smallest(int value) const {
    return join(value, [](int a, int b) { return a < b ? a : b; });
  }
  // Combines the values by two(a, b), which must be commutative.
  template <class T, class Join>
  __device__ T join(T value, const Join& two) const {
    for (int distance = 16; distance > 0; distance /= 2) {
      value = two(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    if (grid_.team == 32) return value;
    __shared__ T shared[block_threads / 32];
    __syncthreads();  // an earlier result may still be read
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int i = 1; i < block_threads / 32; ++i) value = two(value, shared[i]);
    return value;
  }

 private:
  // Calls process.operator()<width>(k) for the packs of this thread's share of a row, which begin at k.
  template <class Process>
  __device__ void packs(const Process& process) const {
    if (grid_.values % 4 == 0) {
      for (int k = member_ * 4; k < grid_.values; k += grid_.team * 4) process.template operator()<4>(k);
    } else {
      for (int k = member_; k < grid_.values; k += grid_.team) process.template operator()<1>(k);
    }
  }
  __device__ int teams() const { return static_cast<int>(blockDim.x) / grid_.team; }

  const RowGrid& grid_;
  int member_, team_;
};

}  // namespace trainctl::cuda
