// Losses with their gradients, by their rules: sums over samples.
#include "core/graph/ops/losses.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

// The targets of a row: a class, or a row of values; smoothed.
struct ClassTarget {
  std::int64_t label;
  Smoothing smoothing;
  TRAINCTL_INLINE float operator()(std::int64_t k) const {
    return (k == label ? smoothing.scale : 0.0f) + smoothing.shift;
  }
};
struct RowTarget {
  const float* row;
  Smoothing smoothing;
  TRAINCTL_INLINE float operator()(std::int64_t k) const { return row[k] * smoothing.scale + smoothing.shift; }
};

// A row of predictions, those of a sample or of one of its positions; dx is null in evaluation.
template <class T>
struct Row {
  const T* x;
  std::int64_t values;
  T* dx;

  TRAINCTL_INLINE bool trains() const { return dx != nullptr; }
  TRAINCTL_INLINE static float exp(float value) { return exp_approx(value); }
  TRAINCTL_INLINE static float log(float value) { return std::log(value); }
  TRAINCTL_INLINE float largest() const {
    float top = load(x[0]);
    for (std::int64_t k = 1; k < values; ++k) top = load(x[k]) > top ? load(x[k]) : top;
    return top;
  }
  template <int n, class Term>
  TRAINCTL_INLINE Sums<n> sums(const Term& term) const {
    return sums_of(term, std::make_integer_sequence<int, n>());
  }
  template <class Value>
  TRAINCTL_INLINE void write(const Value& value) const {
    const T* const from = x;
    T* const to = dx;
#pragma omp simd
    for (std::int64_t k = 0; k < values; ++k) to[k] = store<T>(value(k, load(from[k])));
  }

 private:
  // Computes one sum after the other, and of each term only the part that the sum needs.
  template <class Term, int... i>
  TRAINCTL_INLINE Sums<sizeof...(i)> sums_of(const Term& term, std::integer_sequence<int, i...>) const {
    return {{sum_of<i>(term)...}};
  }
  template <int i, class Term>
  TRAINCTL_INLINE float sum_of(const Term& term) const {
    const T* const from = x;
    const auto part = [=](std::int64_t k) TRAINCTL_INLINE { return term(k, load(from[k])).of[i]; };
    return lane_sum<float>(values, part);
  }
};

// The loss of a row. In training also writes the row's gradient times the weight.
template <class Rule, class T, class Target>
TRAINCTL_INLINE inline float row_loss(const Rule& rule, const Row<T>& row, const Target& target, float weight) {
  if constexpr (Rule::by_element) {
    const auto count = static_cast<float>(row.values);
    const auto element = [=](std::int64_t k, float x)
                             TRAINCTL_INLINE { return Sums<1>{{rule.template element<Math>(x, target(k))}}; };
    const float loss = row.template sums<1>(element).of[0] / count;
    if (row.trains()) {
      const float scale = weight / count;
      row.write([=](std::int64_t k, float x)
                    TRAINCTL_INLINE { return scale * rule.template slope<Math>(x, target(k)); });
    }
    return loss;
  } else {
    return rule.row(row, target, weight);
  }
}

// The same for the row with this number, whose target is read in the form that the rule states. A class number outside
// of the classes makes the loss NaN.
template <class Rule, class T>
float row_loss(const Rule& rule, const Row<T>& row, const void* targets, std::int64_t number, float weight) {
  float loss = 0;
  const Smoothing smoothing = rule.smoothing(row.values);
  if constexpr (Rule::targets == LossTargets::class_numbers) {
    const std::int64_t label = static_cast<const std::int32_t*>(targets)[number];
    if (label < 0 || label >= row.values) return std::numeric_limits<float>::quiet_NaN();
    simd([=, &loss]() TRAINCTL_INLINE { loss = row_loss(rule, row, ClassTarget{label, smoothing}, weight); });
  } else {
    const float* values = static_cast<const float*>(targets) + number * row.values;
    simd([=, &loss]() TRAINCTL_INLINE { loss = row_loss(rule, row, RowTarget{values, smoothing}, weight); });
  }
  return loss;
}

template <class T, class Rule>
Lowering lower_rule(const LowerContext& context, const Loss& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t rows = shape.rows(), n = shape.back();
  const std::int64_t rows_each = rows_per_weight(shape, context.input(2).shape);
  const auto run = [=, training = def.training, accumulate = def.accumulate, scale = def.scale, counts = def.counts,
                    gradient = static_cast<std::size_t>(def.sums())](const Places& places) {
    const T* x = places.in<T>(0);
    const void* targets = places.in<void>(1);
    const float* weights = places.in<float>(2);
    T* dx = training ? places.out<T>(gradient) : nullptr;
    float* losses = places.workspace<float>();
    const std::int64_t grain = std::max<std::int64_t>(1, element_grain / 8 / n);
    parallel_ranges(rows, grain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const Row<T> row{x + r * n, n, dx ? dx + r * n : nullptr};
        const float weight = weights[rows_each == 1 ? r : r / rows_each];
        if (weight == 0) {  // skipped rows may hold any values, also NaN
          losses[r] = 0;
          if (dx) std::fill(row.dx, row.dx + n, T{});
        } else {
          losses[r] = weight * row_loss(rule, row, targets, r, weight * scale);
        }
      }
    });
    const auto add_up = [&](const float* values, std::int64_t count, float* total) {
      float sum = accumulate ? *total : 0.0f;
      for (std::int64_t i = 0; i < count; ++i) sum += values[i];
      *total = sum;
    };
    add_up(losses, rows, places.out<float>(0));
    if (counts) add_up(weights, rows / rows_each, places.out<float>(1));
  };
  return own_kernel(context, run, rows * size_of(DType::float32));
}

}  // namespace

Lowering lower_loss(const LowerContext& context) {
  const auto& def = context.op.as<Loss>();
  return with_type(context.input(0).dtype, [&](auto type) {
    return std::visit([&](const auto& rule) { return lower_rule<decltype(type)>(context, def, rule); }, def.rule);
  });
}

}  // namespace trainctl::cpu
