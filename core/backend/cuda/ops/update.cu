// The ops between the gradients and the optimizer: zeroing, agreement, the norm.
#include "core/graph/ops/update.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The losses that agree() looks at.
struct LossSums {
  static constexpr std::size_t most = 16;
  const float* of[most];
  std::size_t count;
};

__global__ void agree(LossSums losses, const float* stop, float* flags) {
  float not_finite = 0;
  for (std::size_t i = 0; i < losses.count; ++i) {
    if (!isfinite(*losses.of[i])) not_finite = 1;
  }
  flags[agree_not_finite] = not_finite;
  flags[agree_stop] = *stop;
}

constexpr int norm_blocks = 512;

// Each block sums the squares of its own stripe, in float64; the last block adds the stripes in order, so that the norm
// has the same bits every time.
__global__ void gradient_norm(const float* gradient, std::int64_t elements, double* sums, unsigned* counter,
                              const float* count, float* norm) {
  constexpr int width = 4;
  const std::int64_t whole = is_aligned(gradient) ? elements / width : 0;
  double sum = 0;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    for (float value : pack_at<width>(gradient + i * width).values) sum += static_cast<double>(value) * value;
  }
  for (std::int64_t i = whole * width + first_element(); i < elements; i += element_stride()) {
    sum += static_cast<double>(gradient[i]) * gradient[i];
  }
  __shared__ double shared[32];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  if (!last_block(counter, gridDim.x)) return;

  sum = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += fresh(sums + i);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *norm = *count > 0 ? static_cast<float>(sqrt(sum) / *count) : 0.0f;
}

}  // namespace

Lowering lower_zero_gradients(const LowerContext& context) {
  const std::int64_t bytes = context.op.as<ZeroGradients>().count * size_of(DType::float32);
  return own_kernel(context, [bytes](const Places& p) {
    check(cudaMemsetAsync(p.out<void>(0), 0, static_cast<std::size_t>(bytes), p.stream), "cudaMemsetAsync");
  });
}

Lowering lower_agree(const LowerContext& context) {
  const std::size_t count = context.op.inputs.size() - 1;
  require(count <= LossSums::most, "agree looks at 16 losses at most");
  return own_kernel(context, [count](const Places& p) {
    LossSums losses{{}, count};
    for (std::size_t i = 0; i < count; ++i) losses.of[i] = p.in<float>(i);
    launch(agree, 1, 1, p.stream, losses, p.in<float>(count), p.out<float>(0));
  });
}

Lowering lower_gradient_norm(const LowerContext& context) {
  const std::int64_t elements = context.op.as<GradientNorm>().elements;
  const int blocks = blocks_for(elements, 8, norm_blocks);
  return own_kernel(
      context,
      [elements, blocks, counter = make_counters(1)](const Places& p) {
        launch(gradient_norm, blocks, block_threads, p.stream, p.in<float>(0), elements, p.workspace<double>(),
               counter.get(), p.in<float>(1), p.out<float>(0));
      },
      blocks * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace trainctl::cuda
