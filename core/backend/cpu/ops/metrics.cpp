// Metrics: weighted sums over samples.
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/metrics.h"

namespace trainctl::cpu {
namespace {

template <class T>
std::int64_t first_largest(const T* x, std::int64_t n) {
  std::int64_t best = 0;
  for (std::int64_t k = 1; k < n; ++k) {
    if (load(x[k]) > load(x[best])) best = k;
  }
  return best;
}

struct Targets {
  const void* data;
  bool sparse;
  std::int64_t values;

  const float* row(std::int64_t sample) const { return static_cast<const float*>(data) + sample * values; }
  std::int64_t label(std::int64_t sample) const {
    return sparse ? static_cast<const std::int32_t*>(data)[sample] : first_largest(row(sample), values);
  }
};

template <class T>
float row_metric(MetricKind kind, std::int64_t top, const T* x, std::int64_t n, const Targets& targets,
                 std::int64_t sample) {
  switch (kind) {
    case MetricKind::sparse_categorical_accuracy:
    case MetricKind::categorical_accuracy:
      return first_largest(x, n) == targets.label(sample) ? 1.0f : 0.0f;
    case MetricKind::top_k_categorical_accuracy: {
      const std::int64_t label = targets.label(sample);
      if (label < 0 || label >= n) return 0;
      std::int64_t greater = 0;
      for (std::int64_t k = 0; k < n; ++k) greater += load(x[k]) > load(x[label]) ? 1 : 0;
      return greater < top ? 1.0f : 0.0f;
    }
    case MetricKind::binary_accuracy: {
      const float* target = targets.row(sample);
      float right = 0;
      for (std::int64_t k = 0; k < n; ++k) right += (load(x[k]) > 0) == (target[k] > 0.5f) ? 1.0f : 0.0f;
      return right / static_cast<float>(n);
    }
    case MetricKind::mean_absolute_error: {
      const float* target = targets.row(sample);
      float sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += std::abs(load(x[k]) - target[k]);
      return sum / static_cast<float>(n);
    }
  }
  require(false, "a metric of a known kind");
  return 0;
}

}  // namespace

Lowering lower_metric(const LowerContext& context) {
  const auto& def = context.op.as<Metric>();
  const std::int64_t samples = context.input(0).shape[0];
  const std::int64_t n = context.input(0).shape.count() / std::max<std::int64_t>(samples, 1);
  const bool sparse = context.input(1).dtype == DType::int32;
  return with_type(context.input(0).dtype, [&, kind = def.metric, top = def.k, accumulate = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Places& places) {
      const Targets targets{places.in<void>(1), sparse, n};
      const float* weights = places.in<float>(2);
      float sum = accumulate ? *places.out<float>(0) : 0.0f;
      for (std::int64_t sample = 0; sample < samples; ++sample) {
        if (weights[sample] == 0) continue;
        sum += weights[sample] * row_metric(kind, top, places.in<T>(0) + sample * n, n, targets, sample);
      }
      *places.out<float>(0) = sum;
    });
  });
}

}  // namespace trainctl::cpu
