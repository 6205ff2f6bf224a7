// Computes metrics over sequences: decodes each sample greedily and counts its edit distance to the target.
#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/ops/training/sequences.h"

namespace trainctl::cuda {
namespace {

// The first of the likeliest classes of a row. All threads of a warp call this function.
template <class T>
__device__ int likeliest_class(const T* row, int classes) {
  float top = -INFINITY;
  int best = INT_MAX;
  for (int k = static_cast<int>(threadIdx.x % 32); k < classes; k += 32) {
    const float value = load(row[k]);
    if (value > top || best == INT_MAX) top = value, best = k;
  }
  const float largest = join_warp(top, [](float a, float b) { return fmaxf(a, b); });
  const int first = join_warp(top == largest ? best : INT_MAX, [](int a, int b) { return a < b ? a : b; });
  return first == INT_MAX ? 0 : first;  // all values are NaN
}

// A block processes a sample: its warps find the likeliest classes of the steps, and a thread decodes them.
template <class T, class Rule>
__global__ void compare_sequences(SequenceSizes sizes, Rule rule, bool accumulate, const T* x,
                                  const std::int32_t* targets, const float* weights, const std::uint8_t* mask,
                                  std::int32_t* memory, float* of_samples, unsigned* counter, float* sum) {
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  __shared__ int count;
  for (int n = static_cast<int>(blockIdx.x); n < sizes.samples; n += static_cast<int>(gridDim.x)) {
    std::int32_t* const steps = memory + std::int64_t{n} * (2 * sizes.steps + 2 * sizes.longest + 1);
    std::int32_t *const best = steps + sizes.steps, *const target = best + sizes.steps;
    const bool counts = weights[n] != 0;  // other samples may hold any values
    if (threadIdx.x == 0) {
      count = counts ? existing_steps(mask ? mask + std::int64_t{n} * sizes.steps : nullptr, sizes.steps, steps) : 0;
    }
    __syncthreads();
    for (int i = warp; i < count; i += warps) {
      const int k = likeliest_class(x + n * sizes.values() + std::int64_t{steps[i]} * sizes.classes, sizes.classes);
      if (threadIdx.x % 32 == 0) best[i] = k;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const int length =
          target_classes(targets + std::int64_t{n} * sizes.longest, sizes.longest, rule.mask_index, target);
      int decoded = 0, before = -1;
      for (int i = 0; i < count; ++i) {
        const int k = best[i];
        if (ctc_appends(k, before, rule.mask_index)) best[decoded++] = k;
        before = k;
      }
      const int distance = counts ? edit_distance(best, decoded, target, length, target + sizes.longest) : 0;
      of_samples[n] = counts ? weights[n] * rule.of_distance(distance, length) : 0.0f;
    }
    __syncthreads();  // the next sample changes `count`
  }
  if (last_block(counter, gridDim.x)) sum_in_block(of_samples, sizes.samples, accumulate, sum);
}

}  // namespace

template <class T, class Rule>
Lowering lower_sequence_metric(const LowerContext& context, const Metric& def, const Rule& rule) {
  const SequenceSizes sizes(context);
  const std::int64_t numbers = std::int64_t{sizes.samples} * (2 * sizes.steps + 2 * sizes.longest + 1);
  const int blocks = blocks_for(std::int64_t{sizes.samples} * block_threads);
  const auto run = [=, accumulate = def.accumulate, masked = def.masked, counter = make_counters(1)](const Buffers& p) {
    launch(compare_sequences<T, Rule>, blocks, block_threads, p.stream, sizes, rule, accumulate, p.in<T>(0),
           p.in<std::int32_t>(1), p.in<float>(2), masked ? p.in<std::uint8_t>(3) : nullptr, p.workspace<std::int32_t>(),
           p.workspace<float>(numbers * size_of(DType::int32)), counter.get(), p.out<float>(0));
  };
  return own_kernel(context, run, (numbers + sizes.samples) * size_of(DType::int32));
}

#define TRAINCTL_SEQUENCE_METRICS(T)                                                                   \
  template Lowering lower_sequence_metric<T>(const LowerContext&, const Metric&, const EditDistance&); \
  template Lowering lower_sequence_metric<T>(const LowerContext&, const Metric&, const SequenceAccuracy&);
TRAINCTL_SEQUENCE_METRICS(float)
TRAINCTL_SEQUENCE_METRICS(__nv_bfloat16)
TRAINCTL_SEQUENCE_METRICS(__half)
#undef TRAINCTL_SEQUENCE_METRICS

}  // namespace trainctl::cuda
