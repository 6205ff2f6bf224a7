// Rows of predictions and their targets, as the rules of losses read them.
#pragma once

#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/device/rule_math.h"
#include "core/graph/ops/losses/losses.h"

namespace trainctl::cuda {

// The smoothed targets of a row: a class, or a row of values.
struct LossTarget {
  const float* row;
  int label;
  Smoothing smoothing;

  __device__ float operator()(std::int64_t k) const {
    const float target = row != nullptr ? row[k] : k == label ? 1.0f : 0.0f;
    return target * smoothing.scale + smoothing.shift;
  }
};

// A row of predictions of a sample, or of one of its positions, processed by a team; dx is null in evaluation. T may be
// AnyType.
template <class T>
struct LossRow {
  const RowTeam& team;
  Read<T> x;
  Write<T> dx;

  __device__ bool trains() const { return dx != nullptr; }
  __device__ static float exp(float value) { return expf(value); }
  __device__ static float log(float value) { return logf(value); }
  __device__ static float power(float value, float exponent) { return Math::power(value, exponent); }
  __device__ float largest() const {
    return largest([](int, float value) { return value; });
  }
  template <class Value>
  __device__ float largest(const Value& of) const {
    float top = -INFINITY;
    team.each(x, [&](int k, float value) { top = fmaxf(top, of(k, value)); });
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

// A rank's range of a row of classes, and the class sums of all ranks that hold ranges of the row.
template <class T>
struct PartOfRow {
  const LossRow<T>& own;
  const float* of_all;
  int ranks;

  __device__ bool trains() const { return own.trains(); }
  __device__ static float exp(float value) { return expf(value); }
  __device__ static float log(float value) { return logf(value); }
  __device__ const float* of(int rank) const { return of_all + rank * class_sums; }
  __device__ float largest() const {
    float top = of(0)[class_largest];
    for (int r = 1; r < ranks; ++r) top = fmaxf(top, of(r)[class_largest]);
    return top;
  }
  // The whole row's sums of the rule's class_sums(), from the sums of each rank, which were computed with the rank's
  // largest value instead of the row's.
  template <int n, class Term>
  __device__ Sums<n> sums(const Term&) const {
    static_assert(n == 3);
    const float top = largest();
    Sums<n> all = {};
    for (int r = 0; r < ranks; ++r) {
      const float below = of(r)[class_largest] - top;
      all.of[0] += of(r)[class_exponentials] * exp(below);
      all.of[1] += of(r)[class_targets];
      all.of[2] += of(r)[class_products] + of(r)[class_targets] * below;
    }
    return all;
  }
  template <class Value>
  __device__ void write(const Value& value) const {
    own.write(value);
  }
};

// The target of row `row`, from the first column of this rank's range on. Sets `valid` to false if a class number is
// outside of the classes.
template <class Rule>
__device__ LossTarget loss_target(const void* targets, std::int64_t row, const ColumnRange& range,
                                  const Smoothing& smoothing, bool& valid) {
  LossTarget target{nullptr, 0, smoothing};
  if constexpr (Rule::targets == LossTargets::class_numbers) {
    const int label = static_cast<const std::int32_t*>(targets)[row];
    valid = label >= 0 && label < range.of;
    target.label = label - static_cast<int>(range.first);
  } else {
    target.row = static_cast<const float*>(targets) + row * range.of + range.first;
  }
  return target;
}

// Writes the class sums of row `number`, whose largest value is `top`, for the classes of the range. All threads of the
// team return the rule's sums.
template <class Rule, class T>
__device__ Sums<3> write_class_sums(const LossRow<T>& row, float top, std::int64_t number, const void* targets,
                                    const ColumnRange& range, const Smoothing& smoothing, float* sums) {
  int best = INT_MAX;
  row.team.each(row.x, [&](int k, float value) {
    if (value == top && k < best) best = k;
  });
  best = row.team.smallest(best);
  bool valid = true;
  const Sums<3> found = Rule::class_sums(row, loss_target<Rule>(targets, number, range, smoothing, valid), top);
  if (row.team.leads()) {
    sums[class_largest] = top;
    sums[class_best] = static_cast<float>(range.first + (best == INT_MAX ? 0 : best));
    for (int i = 0; i < 3; ++i) sums[class_exponentials + i] = found.of[i];
  }
  return found;
}

}  // namespace trainctl::cuda
