// Metrics that are the mean of a loss over elements (core/graph/ops/losses/rule.h), without options.
#pragma once

#include "core/graph/ops/losses/hinge.h"
#include "core/graph/ops/losses/log_cosh.h"
#include "core/graph/ops/losses/mean_squared_logarithmic_error.h"
#include "core/graph/ops/losses/poisson.h"
#include "core/graph/ops/losses/squared_hinge.h"
#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

template <class Loss>
struct MeanLoss : ValueMetric {
  static constexpr const char* name = Loss::name;
  static constexpr const char* meaning = Loss::meaning;
  static constexpr bool larger_is_better = false;

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      return Loss().template element<typename Row::Math>(x, target(k));
    });
    return sum / static_cast<float>(row.values);
  }
};

struct LogCoshError : MeanLoss<LogCosh> {
  static constexpr std::array aliases = LogCosh::aliases;
};
struct MeanSquaredLogarithmicErrorMetric : MeanLoss<MeanSquaredLogarithmicError> {
  static constexpr std::array aliases = MeanSquaredLogarithmicError::aliases;
};
struct PoissonMetric : MeanLoss<Poisson> {};
struct HingeMetric : MeanLoss<Hinge> {};
struct SquaredHingeMetric : MeanLoss<SquaredHinge> {};

}  // namespace trainctl
