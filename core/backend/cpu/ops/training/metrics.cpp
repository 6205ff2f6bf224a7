// Computes the sums of metrics: weighted sums over samples of the values that the metrics' rules define.
#include "core/graph/ops/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/training/sequences.h"
#include "core/backend/cpu/simd/math.h"
#include "core/graph/ops/losses/losses.h"

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

// The target of a row: a class number, or a row of values.
struct Target {
  const std::int32_t* class_number;  // null if the target is a row of values
  const float* row;
  std::int64_t values;

  float operator()(std::int64_t k) const { return row[k]; }
  bool is_class_number() const { return class_number != nullptr; }
  std::int64_t label() const { return class_number != nullptr ? *class_number : first_largest(row, values); }
};

// The row of predictions of a sample, or of one of its positions.
template <class T>
struct MetricRow {
  using Math = cpu::Math;
  const T* x;
  std::int64_t values;
  bool of_sums = false;  // whether x holds the class sums of all ranks instead of predictions

  static float root(float value) { return std::sqrt(value); }
  static float exp(float value) { return std::exp(value); }
  float at(std::int64_t k) const { return load(x[k]); }
  std::int64_t first_largest() const {
    if (!of_sums) return cpu::first_largest(x, values);
    const T* best = x;
    for (const T* rank = x; rank < x + values; rank += class_sums) {
      if (load(rank[class_largest]) > load(best[class_largest])) best = rank;
    }
    return static_cast<std::int64_t>(load(best[class_best]));
  }
  template <class Term>
  TRAINCTL_INLINE float sum(const Term& term) const {
    float sum = 0;
    for (std::int64_t k = 0; k < values; ++k) sum += term(k, load(x[k]));
    return sum;
  }
  template <class Term>
  TRAINCTL_INLINE float largest(const Term& term) const {  // ignores NaN
    float top = -std::numeric_limits<float>::infinity();
    for (std::int64_t k = 0; k < values; ++k) top = std::fmax(top, term(k, load(x[k])));
    return top;
  }
};

// The rows of a micro-batch: predictions, targets and weights.
template <class T>
struct Rows {
  const T* x;
  const void* targets;
  bool class_numbers;
  const float* weights;
  std::int64_t rows, values, rows_each;  // rows_each: number of rows that share a weight
  bool of_sums = false;                  // whether x holds class sums

  float weight(std::int64_t row) const { return weights[rows_each == 1 ? row : row / rows_each]; }

  MetricRow<T> row(std::int64_t row) const { return {x + row * values, values, of_sums}; }
  Target target(std::int64_t row) const {
    if (class_numbers) return {static_cast<const std::int32_t*>(targets) + row, nullptr, values};
    return {nullptr, static_cast<const float*>(targets) + row * values, values};
  }
};

// Adds the terms of a row's outputs to the sums, one term after the other, and computes for each term only the values
// that it needs.
template <class OfOutput, class T, int... i>
TRAINCTL_INLINE inline void add_terms(const OfOutput& of_output, const MetricRow<T>& row, float weight, float* sums,
                                      std::integer_sequence<int, i...>) {
  const auto add = [&](auto term) TRAINCTL_INLINE {
    const T* const x = row.x;
    float* const own = sums + term * row.values;
#pragma omp simd
    for (std::int64_t k = 0; k < row.values; ++k) own[k] += weight * of_output(k, load(x[k])).of[term];
  };
  (add(std::integral_constant<int, i>()), ...);
}

// Adds the rows to the sums; skips rows of weight 0, which may hold any values.
template <class Rule, class T>
void add_up(const Rule& rule, const Rows<T>& rows, float* sums) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const float weight = rows.weight(r);
    if (weight == 0) continue;
    const MetricRow<T> row = rows.row(r);
    const Target target = rows.target(r);
    if constexpr (Rule::over == MetricOver::elements) {
      for (std::int64_t k = 0; k < row.values; ++k) sums[rule.template place<Math>(row.at(k), target(k))] += weight;
    } else if constexpr (Rule::over == MetricOver::cells) {
      sums[rule.cell(row, target)] += weight;
    } else if constexpr (Rule::over == MetricOver::outputs) {
      const auto of_output = rule.of_outputs(row, target);
      simd([=]() TRAINCTL_INLINE {
        add_terms(of_output, row, weight, sums, std::make_integer_sequence<int, Rule::terms>());
      });
    } else {
      *sums += weight * rule.row(row, target);
    }
  }
}

// Adds up the rows in twice the precision of float64, splits each result into its float32 parts, and adds these to the
// sums.
template <class Rule, class T>
void add_exactly(const Rule& rule, const Rows<T>& rows, PreciseSum* own, float* sums) {
  const std::int64_t values = rows.values, count = Rule::terms * values;
  std::fill_n(own, count, PreciseSum{});
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const double weight = rows.weight(r);
    if (weight == 0) continue;
    const MetricRow<T> row = rows.row(r);
    const Target target = rows.target(r);
    for (int i = 0; i < Rule::terms; ++i) {
      for (std::int64_t k = 0; k < values; ++k) {
        own[i * values + k].add_product(weight, rule.term(i, row.at(k), target(k)));
      }
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const SumParts parts = parts_of(own[i]);
    for (int part = 0; part < sum_parts; ++part) sums[part * count + i] += parts.of[part];
  }
}

template <class T, class Rule>
Lowering lower_rule(const LowerContext& context, const Metric& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t rows = shape.rows(), values = shape.back();
  const std::int64_t rows_each = rows_per_weight(shape, context.input(2).shape);
  const bool class_numbers = context.input(1).dtype == DType::int32;
  const auto run = [=, accumulate = def.accumulate, of_sums = def.of_sums](const Buffers& buffers) {
    float* sums = buffers.out<float>(0);
    if (!accumulate) std::fill_n(sums, rule.sums(), 0.0f);
    const Rows<T> all{buffers.in<T>(0), buffers.in<void>(1), class_numbers, buffers.in<float>(2), rows,
                      values,           rows_each,           of_sums};
    if constexpr (Rule::over == MetricOver::exact_outputs) {
      add_exactly(rule, all, buffers.workspace<PreciseSum>(), sums);
    } else {
      add_up(rule, all, sums);
    }
  };
  std::int64_t workspace = 0;
  if constexpr (Rule::over == MetricOver::exact_outputs) {
    workspace = Rule::terms * values * static_cast<std::int64_t>(sizeof(PreciseSum));
  }
  return own_kernel(context, run, workspace);
}

}  // namespace

Lowering lower_metric(const LowerContext& context) {
  const auto& def = context.op.as<Metric>();
  return with_type(context.input(0).dtype, [&](auto type) {
    return std::visit(
        [&]<class Rule>(const Rule& rule) {
          if constexpr (Rule::over == MetricOver::sequences)
            return lower_sequence_metric<decltype(type)>(context, def, rule);
          else
            return lower_rule<decltype(type)>(context, def, rule);
        },
        def.rule);
  });
}

}  // namespace trainctl::cpu
