// Computes losses and their gradients: sums over samples of the values that the losses' rules define.
#include "core/graph/ops/losses/losses.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

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

// All values of a sample at all its positions; dx is null in evaluation.
template <class T>
struct SampleRow {
  const T* x;
  std::int64_t values;
  T* dx;
  const float* weights;  // weights of the positions; null: all positions have weight 1
  std::int64_t each;     // number of values of a position

  TRAINCTL_INLINE bool trains() const { return dx != nullptr; }
  TRAINCTL_INLINE static float sigmoid(float value) { return Math::sigmoid(value); }
  template <int n, class Term>
  TRAINCTL_INLINE Sums<n> sums(const Term& term) const {
    double sums[n] = {};
    const std::int64_t length = weights ? each : max_summed_values;
    for (std::int64_t first = 0; first < values; first += length) {
      const float weight = weights ? weights[first / each] : 1.0f;
      if (weight == 0) continue;  // such positions may hold any values
      const LossRow<T> row{x + first, std::min(length, values - first), nullptr};
      const auto shifted = [=](std::int64_t k, float value) TRAINCTL_INLINE { return term(first + k, value); };
      const Sums<n> found = row.template sums<n>(shifted);
      for (int i = 0; i < n; ++i) sums[i] += weight * found.of[i];
    }
    Sums<n> all;
    for (int i = 0; i < n; ++i) all.of[i] = static_cast<float>(sums[i]);
    return all;
  }
  template <class Value>
  TRAINCTL_INLINE void write(const Value& value) const {
    const std::int64_t length = weights ? each : values;
    for (std::int64_t first = 0; first < values; first += length) {
      const float weight = weights ? weights[first / each] : 1.0f;
      const LossRow<T> row{x + first, length, dx + first};
      if (weight == 0) {
        std::fill_n(row.dx, length, T{});
      } else {
        row.write([=](std::int64_t k, float of) TRAINCTL_INLINE { return weight * value(first + k, of); });
      }
    }
  }

 private:
  static constexpr std::int64_t max_summed_values = 4096;  // values per float32 sum; the total is float64
};

// Returns the loss of a row. In training also writes the row's gradient times the weight.
template <class Rule, class R, class Target>
TRAINCTL_INLINE inline float row_loss(const Rule& rule, const R& row, const Target& target, float weight) {
  if constexpr (Rule::over == LossOver::elements) {
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

// Sets *total to the sum of the values, or adds it to *total with `accumulate`.
void add_up(const float* values, std::int64_t count, bool accumulate, float* total) {
  float sum = accumulate ? *total : 0.0f;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  *total = sum;
}

// Lowers a loss that is computed from all positions of a sample.
template <class T, class Rule>
Lowering lower_samples(const LowerContext& context, const Loss& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t samples = shape[0], positions = shape.rows() / samples, n = positions * shape.back();
  const std::int64_t weights_each = context.input(2).shape.count() / samples;
  const auto run = [=, training = def.training, accumulate = def.accumulate, scale = def.scale, counts = def.counts,
                    gradient = static_cast<std::size_t>(def.sums())](const Buffers& buffers) {
    const T* x = buffers.in<T>(0);
    const void* targets = buffers.in<void>(1);
    const float* weights = buffers.in<float>(2);
    T* dx = training ? buffers.out<T>(gradient) : nullptr;
    float* losses = buffers.workspace<float>();
    parallel_ranges(samples, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t s = begin; s < end; ++s) {
        const float* const own = weights + s * weights_each;
        const bool masked = weights_each > 1;
        const SampleRow<T> row{x + s * n, n, dx ? dx + s * n : nullptr, masked ? own : nullptr, n / positions};
        float weight = masked ? 0.0f : *own * static_cast<float>(positions);  // sum over all positions
        if (masked) add_up(own, positions, false, &weight);
        if (weight == 0) {
          losses[s] = 0;
          if (dx) std::fill(row.dx, row.dx + n, T{});
        } else {
          losses[s] = weight * with_target(rule, targets, s, {0, n}, [&](const auto& target) TRAINCTL_INLINE {
                        return rule.row(row, target, weight * scale);
                      });
        }
      }
    });
    add_up(losses, samples, accumulate, buffers.out<float>(0));
    if (counts) add_up(weights, samples * weights_each, accumulate, buffers.out<float>(1));
  };
  return own_kernel(context, run, samples * size_of(DType::float32));
}

// Lowers a loss that is computed row by row.
template <class T, class Rule>
Lowering lower_rule(const LowerContext& context, const Loss& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t rows = shape.rows(), n = shape.back();
  const std::int64_t rows_each = rows_per_weight(shape, context.input(2).shape);
  const ColumnRange range = def.columns.value_or(ColumnRange{0, n});
  const std::int64_t ranks = def.columns ? context.input(3).shape.back() / class_sums : 0;
  const auto run = [=, training = def.training, accumulate = def.accumulate, scale = def.scale, counts = def.counts,
                    gradient = static_cast<std::size_t>(def.sums())](const Buffers& buffers) {
    const T* x = buffers.in<T>(0);
    const void* targets = buffers.in<void>(1);
    const float* weights = buffers.in<float>(2);
    T* dx = training ? buffers.out<T>(gradient) : nullptr;
    const float* rank_sums = ranks > 0 ? buffers.in<float>(3) : nullptr;
    float* losses = buffers.workspace<float>();
    const std::int64_t grain = std::max<std::int64_t>(1, element_grain / 8 / n);
    parallel_ranges(rows, grain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const LossRow<T> row{x + r * n, n, dx ? dx + r * n : nullptr};
        const float weight = weights[rows_each == 1 ? r : r / rows_each];
        if (weight == 0) {  // skipped rows may hold any values, also NaN
          losses[r] = 0;
          if (dx) std::fill(row.dx, row.dx + n, T{});
        } else {
          losses[r] = weight * with_target(rule, targets, r, range, [&](const auto& target) TRAINCTL_INLINE {
                        if constexpr (Rule::over == LossOver::classes) {
                          const RowShard<T> shard{row, rank_sums + r * ranks * class_sums, ranks};
                          if (ranks > 0) return row_loss(rule, shard, target, weight * scale);
                        }
                        return row_loss(rule, row, target, weight * scale);
                      });
        }
      }
    });
    add_up(losses, rows, accumulate, buffers.out<float>(0));
    if (counts) add_up(weights, rows / rows_each, accumulate, buffers.out<float>(1));
  };
  return own_kernel(context, run, rows * size_of(DType::float32));
}

// Lowers the class sums of a rank's column range.
template <class T, class Rule>
Lowering lower_sums(const LowerContext& context, const ColumnRange& range, const Rule& rule) {
  const std::int64_t rows = context.input(0).shape.rows(), n = context.input(0).shape.back();
  return own_kernel(context, [=](const Buffers& buffers) {
    const T* x = buffers.in<T>(0);
    const void* targets = buffers.in<void>(1);
    float* sums = buffers.out<float>(0);
    parallel_ranges(rows, std::max<std::int64_t>(1, element_grain / 8 / n), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const LossRow<T> row{x + r * n, n, nullptr};
        float* const own = sums + r * class_sums;
        const float top = row.largest();
        std::int64_t best = 0;
        while (best + 1 < n && load(row.x[best]) != top) ++best;
        own[class_largest] = top;
        own[class_best] = static_cast<float>(range.first + best);
        with_target(rule, targets, r, range, [&](const auto& target) TRAINCTL_INLINE {
          const Sums<3> found = Rule::class_sums(row, target, top);
          std::copy(found.of, found.of + 3, own + class_exponentials);
          return 0.0f;
        });
      }
    });
  });
}

}  // namespace

Lowering lower_class_sums(const LowerContext& context) {
  const auto& def = context.op.as<ClassSums>();
  return with_type(context.input(0).dtype, [&](auto type) {
    return std::visit(
        [&]<class Rule>(const Rule& rule) -> Lowering {
          if constexpr (Rule::over == LossOver::classes) return lower_sums<decltype(type)>(context, def.columns, rule);
          require(false, "class_sums: the loss is not over classes");
          return {};
        },
        def.rule);
  });
}

Lowering lower_loss(const LowerContext& context) {
  const auto& def = context.op.as<Loss>();
  return with_type(context.input(0).dtype, [&](auto type) {
    return std::visit(
        [&]<class Rule>(const Rule& rule) {
          if constexpr (Rule::over == LossOver::samples)
            return lower_samples<decltype(type)>(context, def, rule);
          else
            return lower_rule<decltype(type)>(context, def, rule);
        },
        def.rule);
  });
}

}  // namespace trainctl::cpu
