// The ops between the gradients and the optimizer: zeroing, agreement of the ranks, the gradient norm and running
// statistics.
#include "core/graph/ops/training/update.h"
#include "core/graph/ops/normalization/statistics.h"

#include <cmath>
#include <cstring>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t square_chunk = element_grain;  // number of elements in a partial sum of squares

std::int64_t chunks_of(std::int64_t elements) { return (elements + square_chunk - 1) / square_chunk; }

// Writes the sum of the squares of each chunk of `values`, in float64.
void square_chunks(const float* values, std::int64_t elements, double* sums) {
  parallel_ranges(chunks_of(elements), 1, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t c = begin; c < end; ++c) {
        const float* chunk = values + c * square_chunk;
        const auto square = [=](std::int64_t i) TRAINCTL_INLINE {
          const double value = chunk[i];
          return value * value;
        };
        sums[c] = lane_sum<double>(std::min(square_chunk, elements - c * square_chunk), square);
      }
    });
  });
}

// Adds the sums of chunks in order, so that the total has the same bits for any number of threads.
template <class T>
double in_order(const T* sums, std::int64_t chunks) {
  double sum = 0;
  for (std::int64_t c = 0; c < chunks; ++c) sum += sums[c];
  return sum;
}

// Writes the sum of the squares of each chunk of norm_chunk values, in float32.
void write_chunk_squares(const float* values, std::int64_t count, float* sums) {
  parallel_ranges(divide_up(count, norm_chunk), 16, [=](std::int64_t from, std::int64_t to) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t c = from; c < to; ++c) {
        const std::int64_t begin = c * norm_chunk;
        const auto square = [=](std::int64_t i) TRAINCTL_INLINE {
          const double value = values[begin + i];
          return value * value;
        };
        sums[c] = static_cast<float>(lane_sum<double>(std::min(count - begin, norm_chunk), square));
      }
    });
  });
}

}  // namespace

Lowering lower_zero_gradients(const LowerContext& context) {
  const std::int64_t count = context.op.as<ZeroGradients>().count;
  return own_kernel(context, [count](const Buffers& buffers) {
    std::memset(buffers.out<float>(0), 0, static_cast<std::size_t>(count) * sizeof(float));
  });
}

Lowering lower_zero_gaps(const LowerContext& context) {
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [count, gaps = context.op.as<ZeroGaps>().gaps](const Buffers& buffers) {
    const auto* x = buffers.in<float>(0);
    auto* y = buffers.out<float>(0);
    if (x != y) std::copy_n(x, count, y);
    for (const ZeroGaps::Gap& gap : gaps) std::fill_n(y + gap.first, gap.count, 0.0f);
  });
}

Lowering lower_zero_input(const LowerContext& context) {
  const auto& op = context.op.as<ZeroInput>();
  return own_kernel(context, [bytes = op.type.bytes(), fill = op.fill()](const Buffers& buffers) {
    std::memset(buffers.out<char>(0), fill, static_cast<std::size_t>(bytes));
  });
}

Lowering lower_agree(const LowerContext& context) {
  const bool follows = context.op.as<Agree>().follows;
  return own_kernel(context, [follows, stop = context.op.inputs.size() - 1](const Buffers& buffers) {
    float* flags = buffers.out<float>(0);
    flags[agree_not_finite] = follows && buffers.in<float>(0)[agree_not_finite] != 0 ? 1 : 0;
    for (std::size_t i = follows ? 1 : 0; i < stop; ++i) {
      if (!std::isfinite(*buffers.in<float>(i))) flags[agree_not_finite] = 1;
    }
    flags[agree_stop] = *buffers.in<float>(stop);
    if (flags[agree_stop] >= abandon_request) flags[agree_not_finite] = 1;
  });
}

Lowering lower_gradient_norm(const LowerContext& context) {
  const std::int64_t elements = context.op.as<GradientNorm>().elements;
  const std::int64_t chunks = chunks_of(elements);
  return own_kernel(
      context,
      [elements, chunks](const Buffers& buffers) {
        double* sums = buffers.workspace<double>();
        square_chunks(buffers.in<float>(0), elements, sums);
        const double count = *buffers.in<float>(1);
        *buffers.out<float>(0) = count > 0 ? static_cast<float>(std::sqrt(in_order(sums, chunks)) / count) : 0.0f;
      },
      chunks * static_cast<std::int64_t>(sizeof(double)));
}

Lowering lower_sum_of_squares(const LowerContext& context) {
  const auto& ranges = context.op.as<SumOfSquares>().ranges;
  std::int64_t chunks = 0;
  for (const InputRange& range : ranges) chunks += chunks_of(range.count);
  return own_kernel(
      context,
      [ranges, chunks](const Buffers& buffers) {
        double* next = buffers.workspace<double>();
        for (const InputRange& range : ranges) {
          square_chunks(buffers.in<float>(static_cast<std::size_t>(range.input)) + range.offset, range.count, next);
          next += chunks_of(range.count);
        }
        *buffers.out<float>(0) = static_cast<float>(in_order(buffers.workspace<double>(), chunks));
      },
      chunks * static_cast<std::int64_t>(sizeof(double)));
}

Lowering lower_chunk_squares(const LowerContext& context) {
  const auto& op = context.op.as<ChunkSquares>();
  return own_kernel(context, [ranges = op.ranges, chunks = op.chunks](const Buffers& buffers) {
    float* sums = buffers.out<float>(0);
    std::memset(sums, 0, static_cast<std::size_t>(chunks) * sizeof(float));
    for (const auto& [range, chunk] : ranges) {
      write_chunk_squares(buffers.in<float>(static_cast<std::size_t>(range.input)) + range.offset, range.count,
                          sums + chunk);
    }
  });
}

Lowering lower_sum_of_chunks(const LowerContext& context) {
  return own_kernel(context, [chunks = context.input(0).shape.count()](const Buffers& buffers) {
    *buffers.out<float>(0) = static_cast<float>(in_order(buffers.in<float>(0), chunks));
  });
}

Lowering lower_norm_of_squares(const LowerContext& context) {
  return own_kernel(context, [](const Buffers& buffers) {
    const float squares = *buffers.in<float>(0), count = *buffers.in<float>(1);
    *buffers.out<float>(0) = count > 0 ? std::sqrt(squares) / count : 0.0f;
  });
}

Lowering lower_update_statistics(const LowerContext& context) {
  return own_kernel(context, [momenta = context.op.as<UpdateStatistics>().momenta,
                              channels = context.output_counts()](const Buffers& buffers) {
    const float count = *buffers.in<float>(channels.size());
    const bool finite = buffers.in<float>(channels.size() + 1)[agree_not_finite] == 0 &&
                        std::isfinite(*buffers.in<float>(channels.size() + 2));
    if (!finite || !(count > 0)) return;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const float* sum = buffers.in<float>(i);
      float* moving = buffers.out<float>(i);
      for (std::int64_t c = 0; c < channels[i]; ++c) {
        moving[c] = momenta[i] * moving[c] + (1.0f - momenta[i]) * (sum[c] / count);
      }
    }
  });
}

Lowering lower_accumulate_statistics(const LowerContext& context) {
  const bool add = context.op.as<AccumulateStatistics>().accumulate;
  return own_kernel(context, [add, channels = context.output_counts()](const Buffers& buffers) {
    const float samples = *buffers.in<float>(channels.size());
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const float* value = buffers.in<float>(i);
      float* sum = buffers.out<float>(i);
      for (std::int64_t c = 0; c < channels[i]; ++c) sum[c] = (add ? sum[c] : 0.0f) + samples * value[c];
    }
  });
}

}  // namespace trainctl::cpu
