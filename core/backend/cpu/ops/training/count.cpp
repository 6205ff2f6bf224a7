// Counts the samples of a micro-batch, or adds up their weights.
#include "core/graph/ops/training/count.h"

#include <algorithm>
#include <numeric>

#include "core/backend/cpu/kernels.h"
#include "core/tensor/sample_numbers.h"

namespace trainctl::cpu {

Lowering lower_count(const LowerContext& context) {
  const bool add = context.op.as<Count>().accumulate, numbers = context.input(0).dtype == DType::int64;
  const std::int64_t values = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    double count = add ? static_cast<double>(*buffers.out<float>(0)) : 0.0;
    if (numbers) {
      const auto* samples = buffers.in<std::int64_t>(0);
      count += static_cast<double>(std::count_if(samples, samples + values, is_counted));
    } else {
      const auto* weights = buffers.in<float>(0);
      count = std::accumulate(weights, weights + values, count);
    }
    *buffers.out<float>(0) = static_cast<float>(count);
  });
}

}  // namespace trainctl::cpu
