// Losses with their gradients, by their rules, one kernel over the predictions' rows: sums over samples.
#include "core/graph/ops/losses.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/device/rule_math.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The targets of a row: a class, or a row of values; smoothed.
struct Target {
  const float* row;
  int label;
  Smoothing smoothing;

  __device__ float operator()(std::int64_t k) const {
    const float target = row != nullptr ? row[k] : k == label ? 1.0f : 0.0f;
    return target * smoothing.scale + smoothing.shift;
  }
};

// A row of predictions, those of a sample or of one of its positions, processed by a team; dx is null in evaluation.
template <class T>
struct Row {
  const RowTeam& team;
  const T* x;
  T* dx;

  __device__ bool trains() const { return dx != nullptr; }
  __device__ static float exp(float value) { return expf(value); }
  __device__ static float log(float value) { return logf(value); }
  __device__ float largest() const {
    float top = -INFINITY;
    team.each(x, [&](int, float value) { top = fmaxf(top, value); });
    return team.largest(top);
  }
  template <int n, class Term>
  __device__ Sums<n> sums(const Term& term) const {
    Sums<n> sums = {};
    team.each(x, [&](int k, float value) {
      const Sums<n> more = term(k, value);
#pragma unroll
      for (int i = 0; i < n; ++i) sums.of[i] += more.of[i];
    });
#pragma unroll
    for (int i = 0; i < n; ++i) sums.of[i] = team.sum(sums.of[i]);
    return sums;
  }
  template <class Value>
  __device__ void write(const Value& value) const {
    team.map(x, dx, value);
  }
};

// The loss of a row. In training also writes the row's gradient times the weight.
template <class Rule, class T>
__device__ float row_loss(const Rule& rule, const Row<T>& row, int values, const Target& target, float weight) {
  if constexpr (Rule::by_element) {
    const auto count = static_cast<float>(values);
    const Sums<1> sum =
        row.template sums<1>([&](int k, float x) { return Sums<1>{{rule.template element<Math>(x, target(k))}}; });
    if (row.trains()) {
      const float scale = weight / count;
      row.write([&](int k, float x) { return scale * rule.template slope<Math>(x, target(k)); });
    }
    return sum.of[0] / count;
  } else {
    return rule.row(row, target, weight);
  }
}

// dx is null in evaluation, count where another loss counts the samples. A row of weight 0 may hold any values; a label
// outside of the classes makes the loss NaN.
template <class T, class Rule>
__global__ void losses(RowGrid grid, Rule rule, Smoothing smoothing, bool accumulate, float scale,
                       std::int64_t rows_each, const T* x, const void* targets, const float* weights, T* dx,
                       float* of_rows, unsigned* counter, float* sum, float* count) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const Row<T> own{team, x + row * grid.values, dx != nullptr ? dx + row * grid.values : nullptr};
    float weight = weights[rows_each == 1 ? row : row / rows_each], loss = 0;
    if (weight == 0) {
      if (own.trains()) team.fill(own.dx, [](int) { return 0.0f; });
    } else {
      Target target{nullptr, 0, smoothing};
      if constexpr (Rule::targets == LossTargets::class_numbers) {
        target.label = static_cast<const std::int32_t*>(targets)[row];
        if (target.label < 0 || target.label >= grid.values) weight = NAN;
      } else {
        target.row = static_cast<const float*>(targets) + row * grid.values;
      }
      loss = weight * row_loss(rule, own, grid.values, target, weight * scale);
    }
    if (team.leads()) of_rows[row] = loss;
  }
  if (!last_block(counter, gridDim.x)) return;
  sum_in_block(of_rows, grid.rows, accumulate, sum);
  if (count != nullptr) sum_in_block(weights, grid.rows / rows_each, accumulate, count);
}

template <class T, class Rule>
Lowering lower_rule(const LowerContext& context, const Loss& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const RowGrid grid(shape.rows(), shape.back());
  const std::int64_t rows_each = rows_per_weight(shape, context.input(2).shape);
  const auto run = [=, smoothing = rule.smoothing(grid.values), training = def.training, accumulate = def.accumulate,
                    scale = def.scale, counts = def.counts, gradient = static_cast<std::size_t>(def.sums()),
                    counter = make_counters(1)](const Places& p) {
    launch(losses<T, Rule>, grid.blocks, block_threads, p.stream, grid, rule, smoothing, accumulate, scale, rows_each,
           p.in<T>(0), p.in<void>(1), p.in<float>(2), training ? p.out<T>(gradient) : nullptr, p.workspace<float>(),
           counter.get(), p.out<float>(0), counts ? p.out<float>(1) : nullptr);
  };
  return own_kernel(context, run, grid.rows * size_of(DType::float32));
}

}  // namespace

Lowering lower_loss(const LowerContext& context) {
  const auto& def = context.op.as<Loss>();
  return with_type(context.input(0).dtype, [&](auto type) {
    return std::visit([&](const auto& rule) { return lower_rule<decltype(type)>(context, def, rule); }, def.rule);
  });
}

}  // namespace trainctl::cuda
