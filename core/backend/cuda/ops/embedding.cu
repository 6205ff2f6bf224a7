// Embeddings: looks up rows of a table; for the gradient of the table, sorts the tokens and sums the gradients of equal
// tokens in the order of their positions.
#include "core/graph/ops/embedding.h"

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/device/token_sort.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

template <class T>
__global__ void look_up(std::int64_t count, std::int64_t channels, std::int64_t rows, ColumnRange range,
                        const std::int32_t* numbers, const float* table, T* y) {
  for (std::int64_t i = first_element(); i < count * channels; i += element_stride()) {
    const std::int64_t number = numbers[i / channels], row = number - range.first;
    const float otherwise = number >= 0 && number < range.of ? 0.0f : NAN;  // 0: another rank holds the row
    y[i] = store<T>(row >= 0 && row < rows ? table[row * channels + i % channels] : otherwise);
  }
}

// The sorted tokens are summed in pieces of this length. A row's tokens may lie in several pieces.
constexpr int piece = 32;
constexpr int batch = 8;  // reads of a thread that are in flight together

template <class T>
struct RowSums {
  SortedTokens sorted;
  const T* dy;
  float *table, *partial;  // partial [piece][2][channels]: sums of rows that a piece shares with other pieces
  std::int64_t count, channels, rows;
  bool accumulate;

  __device__ std::int64_t pieces() const { return (count + piece - 1) / piece; }
  // Whether sorted tokens i - 1 and i are the same; false at both ends.
  __device__ bool continues(std::int64_t i) const {
    return i > 0 && i < count && sorted.tokens[i - 1] == sorted.tokens[i];
  }
  // The sum of the row that continues from the piece before (part 0), or that begins in this piece and continues in the
  // next one (part 1).
  __device__ float* part(std::int64_t number, int which) const { return partial + (2 * number + which) * channels; }
  // Stores the sums of a row in a piece: to a part if the row is in other pieces, too, otherwise to the table.
  template <int width>
  __device__ void store(std::int64_t number, std::int32_t row, std::int64_t channel, bool from_before, bool goes_on,
                        const float (&sums)[width]) const {
    if (!from_before && !goes_on) return store_row(row, channel, sums);
    float* to = part(number, from_before ? 0 : 1) + channel;
#pragma unroll
    for (int k = 0; k < width; ++k) to[k] = sums[k];
  }
  template <int width>
  __device__ void store_row(std::int32_t row, std::int64_t channel, const float (&sums)[width]) const {
    float* to = table + row * channels + channel;
#pragma unroll
    for (int k = 0; k < width; ++k) to[k] = accumulate ? to[k] + sums[k] : sums[k];
  }
};

// A block sums some channels of one piece, in the order of the sorted tokens; each thread sums `width` channels.
template <int width, class T>
__global__ void sum_pieces(RowSums<T> work) {
  const std::int64_t number = blockIdx.x, first = number * piece;
  const std::int64_t end = first + piece < work.count ? first + piece : work.count;
  const std::int64_t channel = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * width;
  if (channel >= work.channels) return;
  float sums[width] = {};
  bool from_before = work.continues(first);
  for (std::int64_t next = first; next < end; next += batch) {
    Pack<T, width> packs[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const std::int64_t i = next + b < end ? next + b : end - 1;
      packs[b] = pack_at<width>(work.dy + work.sorted.positions[i] * work.channels + channel);
    }
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const std::int64_t i = next + b;
      if (i >= end || work.sorted.tokens[i] >= work.rows) return;  // unknown tokens are the last ones
#pragma unroll
      for (int k = 0; k < width; ++k) sums[k] += load(packs[b].values[k]);
      const bool goes_on = work.continues(i + 1);
      if (goes_on && i + 1 < end) continue;
      work.store(number, work.sorted.tokens[i], channel, from_before, goes_on, sums);
      from_before = false;
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
  }
}

// For each piece in which a row begins that continues in the next one: adds up the row's parts in order.
template <class T>
__global__ void join_pieces(RowSums<T> work) {
  const std::int64_t channel = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (channel >= work.channels) return;
  for (std::int64_t begin = blockIdx.x; begin + 1 < work.pieces(); begin += gridDim.x) {
    const std::int64_t first = begin * piece, last = first + piece - 1;
    const std::int32_t row = work.sorted.tokens[last];
    const bool whole = work.sorted.tokens[first] == row;
    if (row >= work.rows || !work.continues(last + 1) || (whole && work.continues(first))) continue;
    float sums[1] = {work.part(begin, 1)[channel]};
    for (std::int64_t next = begin + 1; next < work.pieces() && work.sorted.tokens[next * piece] == row; ++next) {
      sums[0] += work.part(next, 0)[channel];
    }
    work.store_row(row, channel, sums);
  }
}

// The threads of a block, and the blocks, for `pieces` pieces of rows with `values` values.
int threads_of(std::int64_t values) {
  return static_cast<int>(std::min<std::int64_t>(round_up(values, 32), block_threads));
}
dim3 blocks_of(std::int64_t pieces, std::int64_t values) {
  const std::int64_t threads = threads_of(values);
  return {static_cast<unsigned>(pieces), static_cast<unsigned>((values + threads - 1) / threads)};
}

}  // namespace

Lowering lower_embedding(const LowerContext& context) {
  const std::int64_t count = context.input(0).shape.count();
  const std::int64_t rows = context.input(1).shape[0], channels = context.input(1).shape[1];
  const ColumnRange range = context.op.as<Embedding>().range.value_or(ColumnRange{0, rows});
  return with_type(context.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=, blocks = blocks_for(count * channels)](const Buffers& p) {
      launch(look_up<T>, blocks, block_threads, p.stream, count, channels, rows, range, p.in<std::int32_t>(0),
             p.in<float>(1), p.out<T>(0));
    });
  });
}

Lowering lower_embedding_grad(const LowerContext& context) {
  const auto& def = context.op.as<EmbeddingGrad>();
  const std::int64_t count = context.input(0).shape.count(), channels = context.input(1).shape.back();
  const TokenSort sort(count, def.rows, def.range ? def.range->first : 0);
  const std::int64_t sort_bytes = round_up(sort.workspace_bytes(), 16), pieces = (count + piece - 1) / piece;
  return with_packs(
      context.input(1).dtype, channels, [&, rows = def.rows, accumulate = def.accumulate](auto type, auto pack) {
        using T = decltype(type);
        constexpr int width = decltype(pack)::value;
        const auto run = [=](const Buffers& p) {
          float* table = p.out<float>(0);
          if (!accumulate) {
            check(cudaMemsetAsync(table, 0, static_cast<std::size_t>(rows * channels) * sizeof(float), p.stream),
                  "cudaMemsetAsync");
          }
          if (count == 0) return;
          const SortedTokens sorted = sort.run(p.in<std::int32_t>(0), p.workspace<void>(), p.stream);
          auto* partial = reinterpret_cast<float*>(p.workspace<char>() + sort_bytes);
          const RowSums<T> work{sorted, p.in<T>(1), table, partial, count, channels, rows, accumulate};
          launch(sum_pieces<width, T>, blocks_of(pieces, channels / width), threads_of(channels / width), p.stream,
                 work);
          launch(join_pieces<T>, blocks_of(std::min<std::int64_t>(pieces, 1 << 14), channels), threads_of(channels),
                 p.stream, work);
        };
        return own_kernel(context, run, sort_bytes + pieces * 2 * channels * size_of(DType::float32));
      });
}

}  // namespace trainctl::cuda
