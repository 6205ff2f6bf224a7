// What stands between the gradients and the optimizer: zeroing, agreement, norm, running statistics.
#include "core/graph/ops/update.h"

#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/last_block.h"
#include "core/backend/cuda/own_memory.h"
#include "core/backend/cuda/pack.h"
#include "core/graph/ops/batch_norm.h"

namespace trainctl::cuda {
namespace {

__global__ void agree(const float* loss, const float* stop, float* flags) {
  flags[agree_not_finite] = isfinite(*loss) ? 0.0f : 1.0f;
  flags[agree_stop] = *stop;
}

constexpr int norm_blocks = 512;

// Each block sums the squares of its own stripe, in float64; the last one adds the stripes in order: the same bits
// every time.
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

__global__ void update_statistics(const float* sum, const float* count, const float* flags, float momentum,
                                  std::int64_t channels, float* moving) {
  if (flags[agree_not_finite] != 0 || !(*count > 0)) return;
  for (std::int64_t c = first_element(); c < channels; c += element_stride()) {
    moving[c] = momentum * moving[c] + (1.0f - momentum) * (sum[c] / *count);
  }
}

// One block: the sum of the weights, then both statistics times it.
__global__ void accumulate_statistics(const float* mean, const float* variance, const float* weights,
                                      std::int64_t samples, std::int64_t channels, bool add, float* mean_sum,
                                      float* variance_sum) {
  __shared__ float shared[32];
  float weight = 0;
  for (std::int64_t i = threadIdx.x; i < samples; i += blockDim.x) weight += weights[i];
  weight = block_sum(weight, shared);
  for (std::int64_t c = threadIdx.x; c < channels; c += blockDim.x) {
    mean_sum[c] = (add ? mean_sum[c] : 0.0f) + weight * mean[c];
    variance_sum[c] = (add ? variance_sum[c] : 0.0f) + weight * variance[c];
  }
}

}  // namespace

Lowering lower_zero_gradients(const LowerContext& context) {
  const std::int64_t bytes = context.op.as<ZeroGradients>().count * size_of(DType::float32);
  return own_kernel(context, [bytes](const Places& p) {
    check(cudaMemsetAsync(p.out<void>(0), 0, static_cast<std::size_t>(bytes), p.stream), "cudaMemsetAsync");
  });
}

Lowering lower_agree(const LowerContext& context) {
  return own_kernel(
      context, [](const Places& p) { launch(agree, 1, 1, p.stream, p.in<float>(0), p.in<float>(1), p.out<float>(0)); });
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

Lowering lower_update_statistics(const LowerContext& context) {
  const float momentum = context.op.as<UpdateStatistics>().momentum;
  const std::int64_t channels = context.output(0).shape.count();
  return own_kernel(context, [momentum, channels](const Places& p) {
    launch(update_statistics, blocks_for(channels), block_threads, p.stream, p.in<float>(0), p.in<float>(1),
           p.in<float>(2), momentum, channels, p.out<float>(0));
  });
}

Lowering lower_accumulate_statistics(const LowerContext& context) {
  const bool add = context.op.as<AccumulateStatistics>().accumulate;
  const std::int64_t channels = context.output(0).shape.count(), samples = context.input(2).shape.count();
  return own_kernel(context, [add, channels, samples](const Places& p) {
    launch(accumulate_statistics, 1, block_threads, p.stream, p.in<float>(0), p.in<float>(1), p.in<float>(2), samples,
           channels, add, p.out<float>(0), p.out<float>(1));
  });
}

}  // namespace trainctl::cuda
