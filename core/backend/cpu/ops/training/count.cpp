// The count of a micro-batch's samples.
#include "core/graph/ops/training/count.h"

#include <algorithm>
#include <numeric>

#include "core/backend/cpu/kernels.h"
#include "core/tensor/sample_numbers.h"

namespace trainctl::cpu {

Lowering lower_count(const LowerContext& context) {
  const bool add = context.op.as<Count>().accumulate, numbers = context.input(0).dtype == DType::int64;
  const std::int64_t elements = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    double count = add ? static_cast<double>(*p.out<float>(0)) : 0.0;
    if (numbers) {
      const auto* samples = p.in<std::int64_t>(0);
      count += static_cast<double>(std::count_if(samples, samples + elements, is_counted));
    } else {
      const auto* weights = p.in<float>(0);
      count = std::accumulate(weights, weights + elements, count);
    }
    *p.out<float>(0) = static_cast<float>(count);
  });
}

}  // namespace trainctl::cpu
