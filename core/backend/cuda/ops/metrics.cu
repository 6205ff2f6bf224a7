// Metrics: weighted sums over samples.
#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/metrics.h"

namespace trainctl::cuda {
namespace {

// The index of the first of the largest values. NaN is larger than none, but nothing is larger than it either: it wins
// where it comes first.
template <class T>
__device__ int first_largest(const RowTeam& team, const T* x) {
  float top = -INFINITY;
  int best = INT_MAX;
  team.each(x, [&](int k, float value) {
    if (isnan(value)) value = k == 0 ? INFINITY : -INFINITY;
    if (value > top || best == INT_MAX) top = value, best = k;
  });
  const float largest = team.largest(top);
  return team.smallest(top == largest ? best : INT_MAX);
}

struct MetricSetting {
  MetricKind kind;
  std::int64_t top;
  bool sparse, accumulate;
};

template <class T>
__device__ float row_metric(const RowTeam& team, const MetricSetting& setting, const T* x, int values,
                            const std::int32_t* label, const float* target) {
  const auto label_of = [&] { return setting.sparse ? *label : first_largest(team, target); };
  float sum = 0;
  switch (setting.kind) {
    case MetricKind::sparse_categorical_accuracy:
    case MetricKind::categorical_accuracy:
      return first_largest(team, x) == label_of() ? 1.0f : 0.0f;
    case MetricKind::top_k_categorical_accuracy: {
      const int expected = label_of();
      if (expected < 0 || expected >= values) return 0;
      const float threshold = load(x[expected]);
      team.each(x, [&](int, float value) { sum += value > threshold ? 1.0f : 0.0f; });
      return team.sum(sum) < static_cast<float>(setting.top) ? 1.0f : 0.0f;
    }
    case MetricKind::binary_accuracy:
      team.each(x, [&](int k, float value) { sum += (value > 0) == (target[k] > 0.5f) ? 1.0f : 0.0f; });
      break;
    case MetricKind::mean_absolute_error:
      team.each(x, [&](int k, float value) { sum += fabsf(value - target[k]); });
      break;
  }
  return team.sum(sum) / static_cast<float>(values);
}

template <class T>
__global__ void metrics(RowGrid grid, MetricSetting setting, const T* x, const void* targets, const float* weights,
                        float* of_samples, unsigned* counter, float* sum) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    float value = 0;
    if (const float weight = weights[row]; weight != 0) {
      value = weight * row_metric(team, setting, x + row * grid.values, grid.values,
                                  static_cast<const std::int32_t*>(targets) + row,
                                  static_cast<const float*>(targets) + row * grid.values);
    }
    if (team.leads()) of_samples[row] = value;
  }
  if (last_block(counter, gridDim.x)) sum_in_block(of_samples, grid.rows, setting.accumulate, sum);
}

}  // namespace

Lowering lower_metric(const LowerContext& context) {
  const auto& def = context.op.as<Metric>();
  const Shape& shape = context.input(0).shape;
  const RowGrid grid(shape[0], shape.count() / std::max<std::int64_t>(shape[0], 1));
  const MetricSetting setting{def.metric, def.k, context.input(1).dtype == DType::int32, def.accumulate};
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=, counter = make_counters(1)](const Places& p) {
          launch(metrics<T>, grid.blocks, block_threads, p.stream, grid, setting, p.in<T>(0), p.in<void>(1),
                 p.in<float>(2), p.workspace<float>(), counter.get(), p.out<float>(0));
        },
        grid.rows * size_of(DType::float32));
  });
}

}  // namespace trainctl::cuda
