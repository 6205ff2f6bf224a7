// Sums over ranks with bfloat16 summands: rounds the summands, adds them in float32, and widens the sums.
#include "core/graph/ops/training/rounded_sum.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// Rounds the first `values` elements, and writes zeros after them.
__global__ void round_summands(const float* x, std::int64_t values, std::int64_t all, __nv_bfloat16* y) {
  for (std::int64_t i = first_element(); i < all; i += element_stride()) {
    y[i] = store<__nv_bfloat16>(i < values ? x[i] : 0.0f);
  }
}

template <class T>
__global__ void add_summands(const __nv_bfloat16* x, int ranks, std::int64_t count, T* y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    float sum = load(x[i]);
    for (int rank = 1; rank < ranks; ++rank) sum += load(x[rank * count + i]);
    y[i] = store<T>(sum);
  }
}

__global__ void widen_sums(const __nv_bfloat16* x, std::int64_t count, float* y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) y[i] = load(x[i]);
}

}  // namespace

Lowering lower_round_summands(const LowerContext& context) {
  const std::int64_t values = context.input(0).shape.count(), all = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    launch(round_summands, blocks_for(all), block_threads, p.stream, p.in<float>(0), values, all,
           p.out<__nv_bfloat16>(0));
  });
}

Lowering lower_add_summands(const LowerContext& context) {
  const int ranks = context.op.as<AddSummands>().ranks;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(add_summands<T>, blocks_for(count), block_threads, p.stream, p.in<__nv_bfloat16>(0), ranks, count,
             p.out<T>(0));
    });
  });
}

Lowering lower_widen_sums(const LowerContext& context) {
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    launch(widen_sums, blocks_for(count), block_threads, p.stream, p.in<__nv_bfloat16>(0), count, p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
