// Sorts tokens digit by digit: one kernel counts the digits of each block's tokens and turns the counts into first
// indices, another one moves tokens and positions.
#include "core/backend/cuda/device/token_sort.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"

namespace trainctl::cuda {
namespace {

constexpr int digit_bits = 8, digit_values = 1 << digit_bits;
constexpr int sort_warps = block_threads / 32, sort_rounds = 8;  // each warp sorts `sort_rounds` times 32 tokens
constexpr int sort_tile = block_threads * sort_rounds;           // tokens of a block
static_assert(block_threads == digit_values, "each thread sums the counts of one digit");

// One pass of the sort. `positions` is null in the first pass, whose positions are the indices of the tokens.
struct Pass {
  const std::int32_t *tokens, *positions;
  std::int32_t *sorted_tokens, *sorted_positions;
  unsigned* first;  // [digit][block]: first the number of tokens, then the index of the first one in the result
  std::int32_t count, rows;
  int shift;
  std::int64_t first_row;  // 0 after the first pass

  // Token i, relative to the first row; tokens outside of the table are `rows`.
  __device__ std::int32_t token(std::int32_t i) const {
    const std::int64_t token = tokens[i] - first_row;
    return token >= 0 && token < rows ? static_cast<std::int32_t>(token) : rows;
  }
  __device__ int digit(std::int32_t token) const { return token >> shift & (digit_values - 1); }
};

// Replaces `count` values, which other blocks wrote, by the sums of the values before them. All threads of the last
// block must call this function.
__device__ void sum_before(unsigned* values, int count) {
  __shared__ unsigned sums[block_threads];
  const int each = (count + block_threads - 1) / block_threads, begin = static_cast<int>(threadIdx.x) * each;
  const int end = begin + each < count ? begin + each : count;
  unsigned own = 0;
  for (int i = begin; i < end; ++i) own += fresh(values + i);
  sums[threadIdx.x] = own;
  __syncthreads();
  unsigned before = 0;
  for (int thread = 0; thread < static_cast<int>(threadIdx.x); ++thread) before += sums[thread];
  for (int i = begin; i < end; ++i) {
    const unsigned value = fresh(values + i);
    values[i] = before;
    before += value;
  }
}

__global__ void count_digits(Pass pass, unsigned* counter) {
  __shared__ unsigned counts[digit_values];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const std::int32_t begin = static_cast<std::int32_t>(blockIdx.x) * sort_tile;
  const std::int32_t end = begin + sort_tile < pass.count ? begin + sort_tile : pass.count;
  for (std::int32_t i = begin + static_cast<std::int32_t>(threadIdx.x); i < end; i += block_threads) {
    atomicAdd(counts + pass.digit(pass.token(i)), 1u);
  }
  __syncthreads();
  pass.first[threadIdx.x * gridDim.x + blockIdx.x] = counts[threadIdx.x];
  if (last_block(counter, gridDim.x)) sum_before(pass.first, static_cast<int>(gridDim.x) * digit_values);
}

// Each warp moves neighbouring tokens, 32 in each round. The index of a token in the result is the first index of its
// digit in the block, plus the number of tokens with this digit in the warps, rounds and lanes before it.
__global__ void move_tokens(Pass pass) {
  __shared__ unsigned next[sort_warps][digit_values];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int w = 0; w < sort_warps; ++w) next[w][threadIdx.x] = 0;
  __syncthreads();
  const std::int32_t begin = static_cast<std::int32_t>(blockIdx.x) * sort_tile + warp * sort_rounds * 32 + lane;
  std::int32_t tokens[sort_rounds];
  unsigned before[sort_rounds];  // the number of tokens with the same digit before this one in its warp
#pragma unroll
  for (int r = 0; r < sort_rounds; ++r) {
    const std::int32_t i = begin + r * 32;
    tokens[r] = i < pass.count ? pass.token(i) : -1;
    const int digit = tokens[r] >= 0 ? pass.digit(tokens[r]) : -1;
    const unsigned equal = __match_any_sync(0xffffffffu, digit), lower = equal & ((1u << lane) - 1);
    before[r] = (digit >= 0 ? next[warp][digit] : 0) + static_cast<unsigned>(__popc(lower));
    __syncwarp();
    if (digit >= 0 && lower == 0) next[warp][digit] += static_cast<unsigned>(__popc(equal));
    __syncwarp();
  }
  __syncthreads();
  unsigned index = pass.first[threadIdx.x * gridDim.x + blockIdx.x];
  for (int w = 0; w < sort_warps; ++w) {
    const unsigned own = next[w][threadIdx.x];
    next[w][threadIdx.x] = index;
    index += own;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < sort_rounds; ++r) {
    if (tokens[r] < 0) continue;
    const std::int32_t i = begin + r * 32;
    const unsigned to = next[warp][pass.digit(tokens[r])] + before[r];
    pass.sorted_tokens[to] = tokens[r];
    pass.sorted_positions[to] = pass.positions != nullptr ? pass.positions[i] : i;
  }
}

}  // namespace

TokenSort::TokenSort(std::int64_t count, std::int64_t rows, std::int64_t first_row)
    : count_(static_cast<std::int32_t>(count)),
      rows_(static_cast<std::int32_t>(rows)),
      first_row_(static_cast<std::int32_t>(first_row)),
      blocks_(static_cast<std::int32_t>((count + sort_tile - 1) / sort_tile)),
      counter_(make_counters(1)) {
  require(count < std::int64_t{1} << 31 && rows < (std::int64_t{1} << 31) - 1, "an embedding has 2^31 tokens or rows");
}

std::int64_t TokenSort::workspace_bytes() const {
  return (4 * std::int64_t{count_} + std::int64_t{digit_values} * blocks_) * size_of(DType::int32);
}

SortedTokens TokenSort::run(const std::int32_t* tokens, void* workspace, cudaStream_t stream) const {
  auto* memory = static_cast<std::int32_t*>(workspace);
  const std::int64_t each = count_;
  std::int32_t* const lists[2][2] = {{memory, memory + each}, {memory + 2 * each, memory + 3 * each}};
  auto* const first = reinterpret_cast<unsigned*>(memory + 4 * each);
  Pass pass{tokens, nullptr, nullptr, nullptr, first, count_, rows_, 0, first_row_};
  int to = 0;
  do {
    pass.sorted_tokens = lists[to][0];
    pass.sorted_positions = lists[to][1];
    launch(count_digits, blocks_, block_threads, stream, pass, counter_.get());
    launch(move_tokens, blocks_, block_threads, stream, pass);
    pass.tokens = pass.sorted_tokens;
    pass.positions = pass.sorted_positions;
    pass.shift += digit_bits;
    pass.first_row = 0;
    to = 1 - to;
  } while (rows_ >> pass.shift > 0);
  return {pass.tokens, pass.positions};
}

}  // namespace trainctl::cuda
