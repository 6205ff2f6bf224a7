// Rows of predictions and their targets, as the rules of losses read them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/backend/cpu/simd/math.h"
#include "core/backend/cpu/simd/simd.h"
#include "core/graph/ops/losses/losses.h"

namespace trainctl::cpu {

// The smoothed targets of a row, given as a class number or as a row of values.
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

// The row of predictions of a sample, or of one of its positions; dx is null in evaluation.
template <class T>
struct LossRow {
  const T* x;
  std::int64_t values;
  T* dx;

  TRAINCTL_INLINE bool trains() const { return dx != nullptr; }
  TRAINCTL_INLINE static float exp(float value) { return exp_approx(value); }
  TRAINCTL_INLINE static float log(float value) { return std::log(value); }
  TRAINCTL_INLINE static float power(float value, float exponent) { return Math::power(value, exponent); }
  TRAINCTL_INLINE float largest() const {
    return largest([](std::int64_t, float value) TRAINCTL_INLINE { return value; });
  }
  template <class Value>
  TRAINCTL_INLINE float largest(const Value& value) const {
    const T* const from = x;
    float top = value(0, load(from[0]));
#pragma omp simd reduction(max : top)
    for (std::int64_t k = 1; k < values; ++k) {
      const float candidate = value(k, load(from[k]));
      top = candidate > top ? candidate : top;
    }
    return top;
  }
  // Whether all classes but the label have the target 0.
  TRAINCTL_INLINE static bool is_single(const ClassTarget& target) { return target.smoothing.shift == 0.0f; }
  TRAINCTL_INLINE float at(std::int64_t k) const { return load(x[k]); }
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
  // Computes one sum after the other, and for each sum only the component of the terms that it needs.
  template <class Term, int... i>
  TRAINCTL_INLINE Sums<sizeof...(i)> sums_of(const Term& term, std::integer_sequence<int, i...>) const {
    return {{sum_of<i>(term)...}};
  }
  template <int i, class Term>
  TRAINCTL_INLINE float sum_of(const Term& term) const {
    const T* const from = x;
    const auto component = [=](std::int64_t k) TRAINCTL_INLINE { return term(k, load(from[k])).of[i]; };
    return lane_sum<float>(values, component);
  }
};

// A rank's shard of a row of classes, with the class sums of all `ranks` that hold shards of the row.
template <class T>
struct RowShard {
  LossRow<T> own;
  const float* rank_sums;  // [ranks][class_sums]
  std::int64_t ranks;

  TRAINCTL_INLINE bool trains() const { return own.trains(); }
  TRAINCTL_INLINE static float exp(float value) { return exp_approx(value); }
  TRAINCTL_INLINE static float log(float value) { return std::log(value); }
  TRAINCTL_INLINE const float* of(std::int64_t rank) const { return rank_sums + rank * class_sums; }
  TRAINCTL_INLINE float largest() const {
    float top = of(0)[class_largest];
    for (std::int64_t r = 1; r < ranks; ++r) top = of(r)[class_largest] > top ? of(r)[class_largest] : top;
    return top;
  }
  // Merges the ranks' class_sums() of the rule into the sums of the whole row. Each rank's sums refer to the rank's own
  // largest value; they are converted to refer to the largest value of the row.
  template <int n, class Term>
  TRAINCTL_INLINE Sums<n> sums(const Term&) const {
    static_assert(n == 3);
    const float top = largest();
    Sums<n> all = {};
    for (std::int64_t r = 0; r < ranks; ++r) {
      const float below = of(r)[class_largest] - top;
      all.of[0] += of(r)[class_exponentials] * exp(below);
      all.of[1] += of(r)[class_targets];
      all.of[2] += of(r)[class_products] + of(r)[class_targets] * below;
    }
    return all;
  }
  template <class Value>
  TRAINCTL_INLINE void write(const Value& value) const {
    own.write(value);
  }
};

// Calls compute(target) with the target of row `number`, in the encoding of the rule; value 0 of the target is the
// first value of the column range. Returns the result of compute, or NaN if a class number is not one of the classes.
template <class Rule, class Compute>
float with_target(const Rule& rule, const void* targets, std::int64_t number, const ColumnRange& range,
                  const Compute& compute) {
  float result = 0;
  const Smoothing smoothing = rule.smoothing(range.of);
  if constexpr (Rule::targets == LossTargets::class_numbers) {
    const std::int64_t label = static_cast<const std::int32_t*>(targets)[number];
    if (label < 0 || label >= range.of) return std::numeric_limits<float>::quiet_NaN();
    simd([=, &result]() TRAINCTL_INLINE { result = compute(ClassTarget{label - range.first, smoothing}); });
  } else {
    const float* values = static_cast<const float*>(targets) + number * range.of + range.first;
    simd([=, &result]() TRAINCTL_INLINE { result = compute(RowTarget{values, smoothing}); });
  }
  return result;
}

// Writes the class sums of row `number` for the classes of the range. Without a class number that is one of all
// classes, leaves out the three sums of the rule.
template <class Rule, class T>
void write_class_sums(const Rule& rule, const LossRow<T>& row, const void* targets, std::int64_t number,
                      const ColumnRange& range, float* sums) {
  float top = 0;
  simd([=, &top]() TRAINCTL_INLINE { top = row.largest(); });
  std::int64_t best = 0;
  while (best + 1 < row.values && load(row.x[best]) != top) ++best;
  sums[class_largest] = top;
  sums[class_best] = static_cast<float>(range.first + best);
  with_target(rule, targets, number, range, [&](const auto& target) TRAINCTL_INLINE {
    const Sums<3> found = Rule::class_sums(row, target, top);
    std::copy(found.of, found.of + 3, sums + class_exponentials);
    return 0.0f;
  });
}

}  // namespace trainctl::cpu
