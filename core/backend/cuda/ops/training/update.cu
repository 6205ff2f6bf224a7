// The ops between the gradients and the optimizer: they zero gradients, agree on flags, and compute the norm.
#include "core/graph/ops/training/update.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// What agree() reads: losses and, if the update follows another one of the step, the norm of that update's gradient.
struct JudgedValues {
  static constexpr std::size_t max_values = 17;
  const float* of[max_values];
  std::size_t count;
};

// earlier: the flags of the update before, or null.
__global__ void agree(JudgedValues losses, const float* earlier, const float* stop, float* flags) {
  float not_finite = *stop >= abandon_request || (earlier != nullptr && earlier[agree_not_finite] != 0) ? 1 : 0;
  for (std::size_t i = 0; i < losses.count; ++i) {
    if (!isfinite(*losses.of[i])) not_finite = 1;
  }
  flags[agree_not_finite] = not_finite;
  flags[agree_stop] = *stop;
}

constexpr int norm_blocks = 512;

// The sum of the squares of a block's own stripe, in float64; valid in its first thread.
__device__ double squares_of_block(const float* values, std::int64_t elements) {
  constexpr int width = 4;
  const std::int64_t whole = is_aligned(values) ? elements / width : 0;
  double sum = 0;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    for (float value : pack_at<width>(values + i * width).values) sum += static_cast<double>(value) * value;
  }
  for (std::int64_t i = whole * width + first_element(); i < elements; i += element_stride()) {
    sum += static_cast<double>(values[i]) * values[i];
  }
  __shared__ double shared[32];
  return block_sum(sum, shared);
}

// The sum of the blocks' sums, in a fixed order, so that it has the same bits every time; valid in the first thread of
// the only block that calls it.
__device__ double sum_in_order(const double* sums, unsigned count) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum += fresh(sums + i);
  __shared__ double shared[32];
  return block_sum(sum, shared);
}

// Each block sums the squares of its own stripe; the last block adds the stripes.
__global__ void gradient_norm(const float* gradient, std::int64_t elements, double* sums, unsigned* counter,
                              const float* count, float* norm) {
  double sum = squares_of_block(gradient, elements);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  if (!last_block(counter, gridDim.x)) return;
  sum = sum_in_order(sums, gridDim.x);
  if (threadIdx.x == 0) *norm = *count > 0 ? static_cast<float>(sqrt(sum) / *count) : 0.0f;
}

// Each block sums the squares of its own stripe of one range. In the launch for the last range, the last block adds the
// stripes of all ranges.
__global__ void sum_of_squares(const float* values, std::int64_t elements, double* sums, unsigned* counter,
                               const double* all, unsigned all_count, float* result) {
  double sum = squares_of_block(values, elements);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  if (result == nullptr || !last_block(counter, gridDim.x)) return;
  sum = sum_in_order(all, all_count);
  if (threadIdx.x == 0) *result = static_cast<float>(sum);
}

// The elements whose squares a block of chunk_squares adds: `count` elements, from `begin` on, of one of the inputs of
// the launch.
struct InputChunk {
  std::int64_t begin = 0;
  std::int64_t index = 0;  // index of its sum
  int count = 0;
  int input = 0;
};

constexpr int chunk_inputs = 256;  // maximum number of inputs of one launch
struct ChunkInputs {
  const float* values[chunk_inputs];
};

__global__ void chunk_squares(const ChunkInputs inputs, const InputChunk* chunks, float* sums) {
  const InputChunk own = chunks[blockIdx.x];
  const float* values = inputs.values[own.input] + own.begin;
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < own.count; i += static_cast<int>(blockDim.x)) {
    sum += static_cast<double>(values[i]) * values[i];
  }
  __shared__ double shared[32];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) sums[own.index] = static_cast<float>(sum);
}

// One launch of chunk_squares: its inputs, from `first_input` on, and the chunks in them.
struct ChunkLaunch {
  std::size_t first_input = 0;
  int blocks = 0;
  std::shared_ptr<InputChunk> chunks;
};

std::vector<ChunkLaunch> launches_of(const ChunkSquares& op, std::size_t inputs) {
  std::vector<ChunkLaunch> launches;
  for (std::size_t first = 0; first < inputs; first += chunk_inputs) {
    std::vector<InputChunk> chunks;
    for (const auto& [of, chunk] : op.ranges) {
      const int input = of.input - static_cast<int>(first);
      if (input < 0 || input >= chunk_inputs) continue;
      for (std::int64_t c = 0; c * norm_chunk < of.count; ++c) {
        const std::int64_t count = std::min(of.count - c * norm_chunk, norm_chunk);
        chunks.push_back({of.offset + c * norm_chunk, chunk + c, static_cast<int>(count), input});
      }
    }
    if (!chunks.empty()) launches.push_back({first, static_cast<int>(chunks.size()), on_device(chunks)});
  }
  return launches;
}

// Runs on one block.
__global__ void sum_of_chunks(const float* sums, std::int64_t chunks, float* result) {
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < chunks; c += blockDim.x) sum += sums[c];
  __shared__ double shared[32];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *result = static_cast<float>(sum);
}

__global__ void norm_of_squares(const float* squares, const float* count, float* norm) {
  *norm = *count > 0 ? sqrtf(*squares) / *count : 0.0f;
}

// The gaps that one launch zeroes, as an argument of the kernel.
struct Gaps {
  static constexpr std::size_t max_gaps = 128;
  ZeroGaps::Gap of[max_gaps];
};

// Each block zeroes one gap.
__global__ void zero_gaps(const Gaps gaps, float* y) {
  const ZeroGaps::Gap gap = gaps.of[blockIdx.x];
  for (std::int64_t i = threadIdx.x; i < gap.count; i += blockDim.x) y[gap.first + i] = 0;
}

}  // namespace

Lowering lower_zero_gradients(const LowerContext& context) {
  const std::int64_t bytes = context.op.as<ZeroGradients>().count * size_of(DType::float32);
  return own_kernel(context, [bytes](const Buffers& p) {
    check(cudaMemsetAsync(p.out<void>(0), 0, static_cast<std::size_t>(bytes), p.stream), "cudaMemsetAsync");
  });
}

Lowering lower_zero_gaps(const LowerContext& context) {
  const std::int64_t bytes = context.output(0).bytes();
  return own_kernel(context, [bytes, all = context.op.as<ZeroGaps>().gaps](const Buffers& p) {
    auto* y = p.out<float>(0);
    if (p.in<float>(0) != y) {
      check(cudaMemcpyAsync(y, p.in<float>(0), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, p.stream),
            "cudaMemcpyAsync");
    }
    for (std::size_t first = 0; first < all.size(); first += Gaps::max_gaps) {
      const std::size_t count = std::min(Gaps::max_gaps, all.size() - first);
      Gaps gaps;
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), count, gaps.of);
      launch(zero_gaps, static_cast<int>(count), block_threads, p.stream, gaps, y);
    }
  });
}

Lowering lower_zero_input(const LowerContext& context) {
  const auto& op = context.op.as<ZeroInput>();
  return own_kernel(context, [bytes = op.type.bytes(), fill = op.fill()](const Buffers& p) {
    check(cudaMemsetAsync(p.out<void>(0), fill, static_cast<std::size_t>(bytes), p.stream), "cudaMemsetAsync");
  });
}

Lowering lower_agree(const LowerContext& context) {
  const std::size_t first = context.op.as<Agree>().follows ? 1 : 0, stop = context.op.inputs.size() - 1;
  require(stop - first <= JudgedValues::max_values, "agree: more than 16 losses");
  return own_kernel(context, [first, stop](const Buffers& p) {
    JudgedValues values{{}, stop - first};
    for (std::size_t i = first; i < stop; ++i) values.of[i - first] = p.in<float>(i);
    const float* const earlier = first > 0 ? p.in<float>(0) : nullptr;
    launch(agree, 1, 1, p.stream, values, earlier, p.in<float>(stop), p.out<float>(0));
  });
}

Lowering lower_gradient_norm(const LowerContext& context) {
  const std::int64_t elements = context.op.as<GradientNorm>().elements;
  const int blocks = blocks_for(elements, 8, norm_blocks);
  return own_kernel(
      context,
      [elements, blocks, counter = make_counters(1)](const Buffers& p) {
        launch(gradient_norm, blocks, block_threads, p.stream, p.in<float>(0), elements, p.workspace<double>(),
               counter.get(), p.in<float>(1), p.out<float>(0));
      },
      blocks * static_cast<std::int64_t>(sizeof(double)));
}

Lowering lower_sum_of_squares(const LowerContext& context) {
  const auto& ranges = context.op.as<SumOfSquares>().ranges;
  std::vector<int> blocks;
  int all = 0;
  for (const InputRange& range : ranges) all += blocks.emplace_back(blocks_for(range.count, 8, norm_blocks));
  return own_kernel(
      context,
      [ranges, blocks, all, counter = make_counters(1)](const Buffers& p) {
        double* next = p.workspace<double>();
        for (std::size_t i = 0; i < ranges.size(); ++i) {
          const float* values = p.in<float>(static_cast<std::size_t>(ranges[i].input)) + ranges[i].offset;
          launch(sum_of_squares, blocks[i], block_threads, p.stream, values, ranges[i].count, next, counter.get(),
                 p.workspace<double>(), static_cast<unsigned>(all), i + 1 == ranges.size() ? p.out<float>(0) : nullptr);
          next += blocks[i];
        }
        if (ranges.empty()) check(cudaMemsetAsync(p.out<void>(0), 0, sizeof(float), p.stream), "cudaMemsetAsync");
      },
      all * static_cast<std::int64_t>(sizeof(double)));
}

Lowering lower_chunk_squares(const LowerContext& context) {
  const auto& op = context.op.as<ChunkSquares>();
  const std::size_t inputs = context.op.inputs.size();
  return own_kernel(context, [inputs, chunks = op.chunks, launches = launches_of(op, inputs)](const Buffers& p) {
    float* sums = p.out<float>(0);
    check(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(chunks) * sizeof(float), p.stream), "cudaMemsetAsync");
    for (const ChunkLaunch& of : launches) {
      ChunkInputs x{};
      for (std::size_t i = of.first_input; i < std::min(inputs, of.first_input + chunk_inputs); ++i) {
        x.values[i - of.first_input] = p.in<float>(i);
      }
      launch(chunk_squares, of.blocks, block_threads, p.stream, x, of.chunks.get(), sums);
    }
  });
}

Lowering lower_sum_of_chunks(const LowerContext& context) {
  return own_kernel(context, [chunks = context.input(0).shape.count()](const Buffers& p) {
    launch(sum_of_chunks, 1, block_threads, p.stream, p.in<float>(0), chunks, p.out<float>(0));
  });
}

Lowering lower_norm_of_squares(const LowerContext& context) {
  return own_kernel(context, [](const Buffers& p) {
    launch(norm_of_squares, 1, 1, p.stream, p.in<float>(0), p.in<float>(1), p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
