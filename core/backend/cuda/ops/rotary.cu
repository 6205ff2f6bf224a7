// Rotary position embedding: a thread rotates the same pairs of all heads of a row, so that it computes their angles
// once.
#include "core/graph/ops/rotary.h"

#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The tables of RotaryTables in GPU memory, in float32, and the sizes of x [rows, heads * head_size].
struct RotaryGrid {
  const float2 *low, *high;
  std::uint32_t rows, steps, block, pairs, heads, head_size;
  float sign;  // -1 to rotate backwards
  std::uint32_t positions;
};

// Writes the position of each step in its document: positions[n, t] is the number of steps since the document number
// changed. Each block processes samples; a thread searches a range of steps for the last change, and the beginning of
// its first step's document is the last change before the range.
__global__ void document_positions(const std::int32_t* documents, std::int32_t* positions, std::int64_t samples,
                                   int steps) {
  __shared__ int last_change[block_threads];
  const int each = (steps + static_cast<int>(blockDim.x) - 1) / static_cast<int>(blockDim.x);
  const int begin = static_cast<int>(threadIdx.x) * each, end = begin + each < steps ? begin + each : steps;
  for (std::int64_t sample = blockIdx.x; sample < samples; sample += gridDim.x) {
    const std::int32_t* own = documents + sample * steps;
    int change = -1;
    for (int t = begin > 0 ? begin : 1; t < end; ++t) {
      if (own[t] != own[t - 1]) change = t;
    }
    __syncthreads();  // the previous sample's changes may still be read
    last_change[threadIdx.x] = change;
    __syncthreads();
    int start = 0;
    for (int thread = 0; thread < static_cast<int>(threadIdx.x); ++thread) {
      if (last_change[thread] >= 0) start = last_change[thread];
    }
    for (int t = begin; t < end; ++t) {
      if (t > 0 && own[t] != own[t - 1]) start = t;
      positions[sample * steps + t] = t - start;
    }
  }
}

// Rotates `width` pairs of one head. With `neighbours`, the pairs are neighbouring values from x on; otherwise the
// first values of the pairs begin at x and the second ones at x + distance.
template <int width, bool neighbours, class T>
__device__ void rotate(const T* x, T* y, std::uint32_t distance, const float (&cosines)[width],
                       const float (&sines)[width]) {
  const std::uint32_t second = neighbours ? width : distance;
  const Pack<T, width> left = pack_at<width>(x), right = pack_at<width>(x + second);
  float values[2 * width];
#pragma unroll
  for (int k = 0; k < width; ++k) {
    values[k] = load(left.values[k]);
    values[width + k] = load(right.values[k]);
  }
  Pack<T, width> results[2];
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const int first = neighbours ? 2 * k : k, other = neighbours ? 2 * k + 1 : width + k;
    const float a = values[first], b = values[other];
    results[first / width].values[first % width] = store<T>(a * cosines[k] - b * sines[k]);
    results[other / width].values[other % width] = store<T>(a * sines[k] + b * cosines[k]);
  }
  pack_at<width>(y) = results[0];
  pack_at<width>(y + second) = results[1];
}

// The position of a row. `positions` [rows] and `starts` [samples] may be null.
__device__ std::uint32_t position_of(const RotaryGrid& grid, const std::int32_t* positions, const std::int32_t* starts,
                                     std::uint32_t row) {
  if (positions != nullptr) return static_cast<std::uint32_t>(positions[row]);
  if (starts == nullptr) return row % grid.steps;
  const std::uint32_t position = static_cast<std::uint32_t>(starts[row / grid.steps]) + row % grid.steps;
  return position < grid.positions ? position : grid.positions - 1;
}

template <int width, bool neighbours, class T>
__global__ void rotate_rows(RotaryGrid grid, const std::int32_t* positions, const std::int32_t* starts, const T* x,
                            T* y) {
  const std::uint32_t packs = grid.pairs / width;
  for (std::int64_t i = first_element(); i < std::int64_t{grid.rows} * packs; i += element_stride()) {
    const std::uint32_t row = static_cast<std::uint32_t>(i / packs),
                        pair = static_cast<std::uint32_t>(i % packs) * width;
    const std::uint32_t position = position_of(grid, positions, starts, row);
    const float2* high = grid.high + std::int64_t{position / grid.block} * grid.pairs + pair;
    const float2* low = grid.low + std::int64_t{position % grid.block} * grid.pairs + pair;
    float cosines[width], sines[width];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      cosines[k] = high[k].x * low[k].x - high[k].y * low[k].y;
      sines[k] = grid.sign * (high[k].y * low[k].x + high[k].x * low[k].y);
    }
    const std::int64_t first = std::int64_t{row} * grid.heads * grid.head_size + (neighbours ? 2 * pair : pair);
    for (std::uint32_t head = 0; head < grid.heads; ++head) {
      const std::int64_t at = first + std::int64_t{head} * grid.head_size;
      rotate<width, neighbours>(x + at, y + at, grid.pairs, cosines, sines);
    }
  }
}

std::shared_ptr<float2> in_float32(const std::vector<double>& table) {
  std::vector<float2> values;
  for (std::size_t i = 0; i < table.size(); i += 2) {
    values.push_back({static_cast<float>(table[i]), static_cast<float>(table[i + 1])});
  }
  return on_device(values);
}

template <int width, bool neighbours, class T>
Lowering lowering(const LowerContext& context) {
  const auto& def = context.op.as<Rotary>();
  const Shape& x = context.input(0).shape;
  const bool has_starts = def.positions != 0;
  const std::int64_t all_positions = has_starts ? def.positions : x[1];
  const RotaryTables tables(def.a, all_positions);
  const auto low = in_float32(tables.low), high = in_float32(tables.high);
  const RotaryGrid grid{low.get(),
                        high.get(),
                        narrow(x[0] * x[1]),
                        narrow(x[1]),
                        narrow(tables.block),
                        narrow(tables.pairs),
                        narrow(x[2] / def.a.head_size),
                        narrow(def.a.head_size),
                        def.backwards ? -1.0f : 1.0f,
                        narrow(all_positions)};
  const bool has_documents = !has_starts && context.op.inputs.size() > 1, keeps = def.a.width < def.a.head_size;
  const std::int64_t bytes = context.input(0).bytes(), work = x[0] * x[1] * tables.pairs;
  const auto run = [=, owners = std::pair(low, high)](const Buffers& p) {
    if (keeps) copy_unless_in_place(p, 0, bytes);
    std::int32_t* positions = has_documents ? p.workspace<std::int32_t>() : nullptr;
    if (has_documents) {
      const auto blocks = static_cast<int>(std::min<std::int64_t>(grid.rows / grid.steps, 1 << 14));
      launch(document_positions, blocks, block_threads, p.stream, p.in<std::int32_t>(1), positions,
             std::int64_t{grid.rows / grid.steps}, static_cast<int>(grid.steps));
    }
    const std::int32_t* starts = has_starts ? p.in<std::int32_t>(1) : nullptr;
    launch(rotate_rows<width, neighbours, T>, blocks_for(work, width), block_threads, p.stream, grid, positions, starts,
           p.in<T>(0), p.out<T>(0));
  };
  return own_kernel(context, run, has_documents ? x[0] * x[1] * size_of(DType::int32) : 0);
}

}  // namespace

Lowering lower_rotary(const LowerContext& context) {
  const RotaryAttributes& a = context.op.as<Rotary>().a;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    const bool neighbours = a.pairs == RotaryPairs::neighbours;
    const bool packed = a.head_size % widest<T> == 0 && a.width / 2 % widest<T> == 0;
    if (packed) {
      return neighbours ? lowering<widest<T>, true, T>(context) : lowering<widest<T>, false, T>(context);
    }
    return neighbours ? lowering<1, true, T>(context) : lowering<1, false, T>(context);
  });
}

}  // namespace trainctl::cuda
