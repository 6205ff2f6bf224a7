// The divisor of the sum of the samples' losses: the number of samples or the sum of their weights.
#pragma once

#include "core/spec/values.h"

namespace trainctl {

enum class LossReduction { sum_over_batch_size, mean_with_sample_weight };

template <>
struct EnumNames<LossReduction> {
  static constexpr EnumName<LossReduction> names[] = {
      {LossReduction::sum_over_batch_size, "sum_over_batch_size"},
      {LossReduction::mean_with_sample_weight, "mean_with_sample_weight"}};
};

}  // namespace trainctl
