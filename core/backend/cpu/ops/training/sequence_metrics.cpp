// Computes metrics over sequences: decodes each sample greedily and counts its edit distance to the target.
#include <numeric>

#include "core/backend/cpu/ops/training/sequences.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

template <class T>
int likeliest_class(const T* row, std::int64_t classes) {
  int best = 0;
  for (int k = 1; k < classes; ++k) {
    if (load(row[k]) > load(row[best])) best = k;
  }
  return best;
}

}  // namespace

template <class T, class Rule>
Lowering lower_sequence_metric(const LowerContext& context, const Metric& def, const Rule& rule) {
  const SequenceSizes sizes(context);
  const std::int64_t each = 2 * sizes.steps + 2 * sizes.longest + 1;  // the numbers in the memory of a sample
  const auto run = [=, accumulate = def.accumulate, masked = def.masked](const Buffers& buffers) {
    const T* x = buffers.in<T>(0);
    const auto* targets = buffers.in<std::int32_t>(1);
    const float* weights = buffers.in<float>(2);
    const std::uint8_t* mask = masked ? buffers.in<std::uint8_t>(3) : nullptr;
    auto* memory = buffers.workspace<std::int32_t>();
    float* values = buffers.workspace<float>(sizes.samples * each * size_of(DType::int32));
    parallel_ranges(sizes.samples, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        values[n] = 0;
        if (weights[n] == 0) continue;  // such samples may hold any values
        std::int32_t *const steps = memory + n * each, *const decoded = steps + sizes.steps;
        std::int32_t *const target = decoded + sizes.steps, *const distances = target + sizes.longest;
        const int count = existing_steps(mask ? mask + n * sizes.steps : nullptr, sizes.steps, steps);
        const int length = target_classes(targets + n * sizes.longest, sizes.longest, rule.mask_index, target);
        int decoded_length = 0, before = -1;
        for (int i = 0; i < count; ++i) {
          const int best = likeliest_class(x + (n * sizes.steps + steps[i]) * sizes.classes, sizes.classes);
          if (ctc_appends(best, before, rule.mask_index)) decoded[decoded_length++] = best;
          before = best;
        }
        values[n] =
            weights[n] * rule.of_distance(edit_distance(decoded, decoded_length, target, length, distances), length);
      }
    });
    float* sum = buffers.out<float>(0);
    *sum = std::accumulate(values, values + sizes.samples, accumulate ? *sum : 0.0f);
  };
  return own_kernel(context, run, sizes.samples * (each + 1) * size_of(DType::int32));
}

template Lowering lower_sequence_metric<float>(const LowerContext&, const Metric&, const EditDistance&);
template Lowering lower_sequence_metric<Bf16>(const LowerContext&, const Metric&, const EditDistance&);
template Lowering lower_sequence_metric<float>(const LowerContext&, const Metric&, const SequenceAccuracy&);
template Lowering lower_sequence_metric<Bf16>(const LowerContext&, const Metric&, const SequenceAccuracy&);

}  // namespace trainctl::cpu
