// Copies several ranges in one launch; each range has its own blocks.
#include "core/backend/cuda/runtime/runtime.h"

#include "core/backend/cuda/device/pack.h"

namespace trainctl::cuda {
namespace {

constexpr int max_ranges = 8;                          // maximum number of ranges of one launch
constexpr std::int64_t max_unaligned_bytes = 1 << 16;  // maximum size of a range that the kernel copies byte by byte

using Word = std::uint32_t;
constexpr std::int64_t pack_bytes = widest<Word> * sizeof(Word);

__host__ __device__ bool has_packs(const CopyRange& range) { return is_aligned(range.to) && is_aligned(range.from); }

// Range i is copied by the blocks from first_block[i] on, up to, but not including, first_block[i + 1].
struct CopyTable {
  CopyRange ranges[max_ranges];
  int first_block[max_ranges + 1];
};

__global__ void copy_blocks(CopyTable table) {
  const int block = static_cast<int>(blockIdx.x);
  int i = 0;
  while (block >= table.first_block[i + 1]) ++i;
  const CopyRange& range = table.ranges[i];
  const std::int64_t first = std::int64_t{block - table.first_block[i]} * blockDim.x + threadIdx.x;
  const std::int64_t step = std::int64_t{table.first_block[i + 1] - table.first_block[i]} * blockDim.x;
  const std::int64_t packs = has_packs(range) ? range.bytes / pack_bytes : 0;
  for (std::int64_t k = first; k < packs; k += step) {
    pack_at<widest<Word>>(static_cast<Word*>(range.to) + k * widest<Word>) =
        pack_at<widest<Word>>(static_cast<const Word*>(range.from) + k * widest<Word>);
  }
  for (std::int64_t k = packs * pack_bytes + first; k < range.bytes; k += step) {
    static_cast<std::uint8_t*>(range.to)[k] = static_cast<const std::uint8_t*>(range.from)[k];
  }
}

}  // namespace

void copy_ranges(std::span<const CopyRange> ranges, cudaStream_t stream) {
  CopyTable table{};
  int count = 0;
  const auto start = [&] {
    if (count > 0) launch(copy_blocks, table.first_block[count], block_threads, stream, table);
    count = 0;
  };
  for (const CopyRange& range : ranges) {
    if (range.bytes == 0) continue;
    if (!has_packs(range) && range.bytes > max_unaligned_bytes) {
      check(cudaMemcpyAsync(range.to, range.from, static_cast<std::size_t>(range.bytes), cudaMemcpyDefault, stream),
            "cudaMemcpyAsync");
      continue;
    }
    table.ranges[count] = range;
    table.first_block[count + 1] =
        table.first_block[count] + blocks_for(range.bytes / (has_packs(range) ? pack_bytes : 1));
    if (++count == max_ranges) start();
  }
  start();
}

}  // namespace trainctl::cuda
