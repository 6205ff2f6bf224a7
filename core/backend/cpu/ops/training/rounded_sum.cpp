// Computes sums over ranks with bfloat16 summands: it rounds the summands, adds them in float32 and widens the sums.
#include "core/graph/ops/training/rounded_sum.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

// y[i] = value(i) for i in [0, count).
template <class T, class Value>
void each_element(std::int64_t count, T* y, const Value& value) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) y[i] = store<T>(value(i));
    });
  });
}

// Computes the sums in blocks that stay in the cache. The summands of a block are added rank by rank.
template <class T>
void add_summands(const Bf16* x, std::int64_t ranks, std::int64_t count, T* y) {
  constexpr std::int64_t block = 1024;
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      float sums[block];
      for (std::int64_t first = begin; first < end; first += block) {
        const std::int64_t values = std::min(block, end - first);
        for (std::int64_t i = 0; i < values; ++i) sums[i] = load(x[first + i]);
        for (std::int64_t rank = 1; rank < ranks; ++rank) {
          const Bf16* summand = x + rank * count + first;
#pragma omp simd
          for (std::int64_t i = 0; i < values; ++i) sums[i] += load(summand[i]);
        }
        for (std::int64_t i = 0; i < values; ++i) y[first + i] = store<T>(sums[i]);
      }
    });
  });
}

}  // namespace

Lowering lower_round_summands(const LowerContext& context) {
  const std::int64_t values = context.input(0).shape.count(), all = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    auto* y = buffers.out<Bf16>(0);
    each_element(values, y, [x = buffers.in<float>(0)](std::int64_t i) TRAINCTL_INLINE { return x[i]; });
    std::fill(y + values, y + all, store<Bf16>(0.0f));
  });
}

Lowering lower_add_summands(const LowerContext& context) {
  const std::int64_t ranks = context.op.as<AddSummands>().ranks, count = context.output(0).shape.count();
  return with_type(context.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context, [=](const Buffers& buffers) { add_summands(buffers.in<Bf16>(0), ranks, count, buffers.out<T>(0)); });
  });
}

Lowering lower_widen_sums(const LowerContext& context) {
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    each_element(count, buffers.out<float>(0),
                 [x = buffers.in<Bf16>(0)](std::int64_t i) TRAINCTL_INLINE { return load(x[i]); });
  });
}

}  // namespace trainctl::cpu
