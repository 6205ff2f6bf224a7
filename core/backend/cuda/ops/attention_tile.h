// Tiles of attention on CUDA: blocks of 16 x 16 threads, which hold tiles of queries and keys in shared memory and
// compute in float32. Thread (y, x) has the rows y * per_thread + i of a tile and every 16th column from x on.
#pragma once

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/graph/ops/attention_heads.h"

namespace trainctl::cuda {

inline constexpr int team = 16;                     // threads along each side of a block
inline constexpr std::int64_t max_head_size = 128;  // of queries, keys and values

// The sizes of a tile: `rows` queries and as many keys, heads of up to `width` values.
template <int tile_rows, int tile_width>
struct TileSizes {
  static constexpr int rows = tile_rows, width = tile_width;
  static constexpr int per_thread = rows / team;  // rows and columns of scores of a thread
  static constexpr int columns = width / team;    // columns of values of a thread
  static constexpr int stride = width + 1;        // of a row in shared memory; odd, so that rows lie in different banks
};

// An attention op, as its kernels see it.
struct AttentionCall {
  AttentionHeads heads;
  const std::uint8_t* mask = nullptr;
  const std::int32_t* documents = nullptr;
  const std::int32_t* starts = nullptr;
  const std::int64_t *samples = nullptr, *step = nullptr;  // null: no dropout
  std::int64_t first_head = 0;                             // of this op among all heads of the layer

  // `first` is the number of q among the inputs.
  AttentionCall(const AttentionHeads& attention_heads, const Buffers& p, std::size_t first) : heads(attention_heads) {
    const AttentionInputs inputs(heads.a);
    if (inputs.mask != 0) mask = p.in<std::uint8_t>(first + inputs.mask);
    if (inputs.documents != 0) documents = p.in<std::int32_t>(first + inputs.documents);
    if (inputs.starts != 0) starts = p.in<std::int32_t>(first + inputs.starts);
    if (inputs.samples != 0) samples = p.in<std::int64_t>(first + inputs.samples);
    if (inputs.step != 0) step = p.in<std::int64_t>(first + inputs.step);
    if (heads.a.dropout.heads) first_head = heads.a.dropout.heads->first;
  }

  __device__ Visibility visibility(std::int64_t sample) const {
    Visibility result;
    if (mask != nullptr) result.mask = mask + sample * heads.sizes.keys;
    if (documents != nullptr) result.documents = documents + sample * heads.sizes.queries;
    result.causal = heads.a.causal;
    result.window = heads.a.window;
    result.keys = heads.sizes.keys;
    if (starts != nullptr) result.start = starts[sample];
    return result;
  }
  // The factor of a probability by dropout.
  __device__ float dropout_factor(std::int64_t sample, std::int64_t head, std::int64_t t, std::int64_t s) const {
    if (samples == nullptr) return 1.0f;
    const RandomKey key{heads.a.dropout.seed, Purpose::dropout, static_cast<std::uint32_t>(*step),
                        heads.a.dropout.layer};
    const auto element =
        static_cast<std::uint64_t>(((first_head + head) * heads.sizes.queries + t) * heads.sizes.keys + s);
    const PhiloxBlock drawn =
        key.block(static_cast<std::uint64_t>(samples[sample]), static_cast<std::uint32_t>(element / philox_words));
    return uniform01(drawn[element % philox_words]) >= heads.a.dropout.rate ? 1.0f / (1.0f - heads.a.dropout.rate)
                                                                            : 0.0f;
  }
};

// The grid of a kernel whose blocks are (tiles, heads, samples). It has one dimension, since CUDA limits the others to
// 65,535 blocks.
inline dim3 attention_blocks(std::int64_t tiles, std::int64_t heads, std::int64_t samples) {
  const std::int64_t blocks = checked_multiply(checked_multiply(tiles, heads), samples);
  require(blocks < std::int64_t{1} << 31, "an attention op has 2^31 or more tiles");
  return dim3(static_cast<unsigned>(blocks));
}

// The place of the current block in that grid.
struct AttentionBlock {
  std::int64_t tile, head, sample;

  __device__ AttentionBlock(std::int64_t tiles, std::int64_t heads)
      : tile(blockIdx.x % tiles), head(blockIdx.x / tiles % heads), sample(blockIdx.x / tiles / heads) {}
};

__device__ inline int thread_x() { return static_cast<int>(threadIdx.x) % team; }
__device__ inline int thread_y() { return static_cast<int>(threadIdx.x) / team; }

// Joins the values of the 16 threads with the same y; all of them get the result.
template <class Join>
__device__ float join_row(float value, const Join& join) {
  for (int distance = team / 2; distance > 0; distance /= 2) {
    value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}
__device__ inline float sum_of_row(float value) {
  return join_row(value, [](float one, float two) { return one + two; });
}

// Fills a tile in shared memory with rows [first, first + Sizes::rows) of `count` rows; other values are 0.
template <class Sizes, class T>
__device__ void fetch(const T* memory, const HeadRows& from, std::int64_t first, std::int64_t count, std::int64_t width,
                      float* tile) {
  for (int i = static_cast<int>(threadIdx.x); i < Sizes::rows * Sizes::width; i += team * team) {
    const int row = i / Sizes::width, column = i % Sizes::width;
    const bool inside = first + row < count && column < width;
    tile[row * Sizes::stride + column] = inside ? load(memory[from.offset + (first + row) * from.step + column]) : 0.0f;
  }
}

// sums[i][j] = the product of row y * per_thread + i of `left` and row x + 16 j of `right`, times factor.
template <class Sizes>
__device__ void multiply_rows(const float* left, const float* right, std::int64_t width, float factor,
                              float (&sums)[Sizes::per_thread][Sizes::per_thread]) {
  for (auto& row : sums) {
    for (float& sum : row) sum = 0;
  }
  for (int k = 0; k < static_cast<int>(width); ++k) {
#pragma unroll
    for (int i = 0; i < Sizes::per_thread; ++i) {
      const float value = left[(thread_y() * Sizes::per_thread + i) * Sizes::stride + k];
#pragma unroll
      for (int j = 0; j < Sizes::per_thread; ++j)
        sums[i][j] += value * right[(thread_x() + team * j) * Sizes::stride + k];
    }
  }
  for (auto& row : sums) {
    for (float& sum : row) sum *= factor;
  }
}

// sums[i][j] += the sum over s of scores(y * per_thread + i, s) times column x + 16 j of row s of `right`.
template <class Sizes, class Scores>
__device__ void add_products(const Scores& scores, const float* right,
                             float (&sums)[Sizes::per_thread][Sizes::columns]) {
  for (int s = 0; s < Sizes::rows; ++s) {
#pragma unroll
    for (int i = 0; i < Sizes::per_thread; ++i) {
      const float value = scores(thread_y() * Sizes::per_thread + i, s);
#pragma unroll
      for (int j = 0; j < Sizes::columns; ++j) sums[i][j] += value * right[s * Sizes::stride + thread_x() + team * j];
    }
  }
}

// Writes the thread's sums, times factor(i), to rows [first, ...) of `count` rows.
template <class Sizes, class T, class Factor>
__device__ void put(const float (&sums)[Sizes::per_thread][Sizes::columns], const Factor& factor, T* memory,
                    const HeadRows& to, std::int64_t first, std::int64_t count, std::int64_t width) {
#pragma unroll
  for (int i = 0; i < Sizes::per_thread; ++i) {
    const std::int64_t row = first + thread_y() * Sizes::per_thread + i;
#pragma unroll
    for (int j = 0; j < Sizes::columns; ++j) {
      const int column = thread_x() + team * j;
      if (row < count && column < width) memory[to.offset + row * to.step + column] = store<T>(sums[i][j] * factor(i));
    }
  }
}

// Calls make(TileSizes{}) with tiles that fit the heads and the static shared memory of all GPUs.
template <class Make>
Lowering with_tile(const LowerContext& context, const AttentionAttributes& a, const Make& make) {
  const std::int64_t widest = std::max(a.head_size, a.value_size);
  if (widest <= 64) return make(TileSizes<32, 64>{});
  if (widest <= max_head_size) return make(TileSizes<16, 128>{});
  throw Error(ErrorKind::config, context.label() + ": attention on GPUs takes heads of at most 128 values",
              "use more heads of a smaller size");
}

}  // namespace trainctl::cuda
