// What the sum of the samples' losses is divided by.
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
