// Several copies as one launch: each part has blocks of its own.
#include "core/backend/cuda/runtime/runtime.h"

#include "core/backend/cuda/device/pack.h"

namespace trainctl::cuda {
namespace {

constexpr int most_parts = 8;                    // in a launch
constexpr std::int64_t most_by_bytes = 1 << 16;  // bytes of a part that is not made of packs

using Word = std::uint32_t;
constexpr std::int64_t pack_bytes = widest<Word> * sizeof(Word);

__host__ __device__ bool has_packs(const CopyRange& part) { return is_aligned(part.to) && is_aligned(part.from); }

// Part i belongs to the blocks from first_block[i] on, below first_block[i + 1].
struct CopyTable {
  CopyRange parts[most_parts];
  int first_block[most_parts + 1];
};

__global__ void copy_blocks(CopyTable table) {
  const int block = static_cast<int>(blockIdx.x);
  int i = 0;
  while (block >= table.first_block[i + 1]) ++i;
  const CopyRange& part = table.parts[i];
  const std::int64_t first = std::int64_t{block - table.first_block[i]} * blockDim.x + threadIdx.x;
  const std::int64_t step = std::int64_t{table.first_block[i + 1] - table.first_block[i]} * blockDim.x;
  const std::int64_t packs = has_packs(part) ? part.bytes / pack_bytes : 0;
  for (std::int64_t k = first; k < packs; k += step) {
    pack_at<widest<Word>>(static_cast<Word*>(part.to) + k * widest<Word>) =
        pack_at<widest<Word>>(static_cast<const Word*>(part.from) + k * widest<Word>);
  }
  for (std::int64_t k = packs * pack_bytes + first; k < part.bytes; k += step) {
    static_cast<std::uint8_t*>(part.to)[k] = static_cast<const std::uint8_t*>(part.from)[k];
  }
}

}  // namespace

void copy_ranges(std::span<const CopyRange> parts, cudaStream_t stream) {
  CopyTable table{};
  int count = 0;
  const auto start = [&] {
    if (count > 0) launch(copy_blocks, table.first_block[count], block_threads, stream, table);
    count = 0;
  };
  for (const CopyRange& part : parts) {
    if (part.bytes == 0) continue;
    if (!has_packs(part) && part.bytes > most_by_bytes) {
      check(cudaMemcpyAsync(part.to, part.from, static_cast<std::size_t>(part.bytes), cudaMemcpyDefault, stream),
            "cudaMemcpyAsync");
      continue;
    }
    table.parts[count] = part;
    table.first_block[count + 1] =
        table.first_block[count] + blocks_for(part.bytes / (has_packs(part) ? pack_bytes : 1));
    if (++count == most_parts) start();
  }
  start();
}

}  // namespace trainctl::cuda
