// Computes losses and their gradients: sums over samples of the values that the losses' rules define.
#include "core/graph/ops/losses/losses.h"

#include <algorithm>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/training/loss_rows.h"
#include "core/backend/cpu/ops/training/sequences.h"

namespace trainctl::cpu {
namespace {

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
  const std::size_t sums = def.of_sums ? 0 : 3;  // the input with the class sums
  const std::int64_t ranks = def.columns ? context.input(sums).shape.back() / class_sums : 0;
  const auto run = [=, training = def.training, accumulate = def.accumulate, scale = def.scale, counts = def.counts,
                    gradient = static_cast<std::size_t>(def.sums())](const Buffers& buffers) {
    const T* x = buffers.in<T>(0);
    const void* targets = buffers.in<void>(1);
    const float* weights = buffers.in<float>(2);
    T* dx = training ? buffers.out<T>(gradient) : nullptr;
    const float* rank_sums = ranks > 0 ? buffers.in<float>(sums) : nullptr;
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
        write_class_sums(rule, LossRow<T>{x + r * n, n, nullptr}, targets, r, range, sums + r * class_sums);
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
          if constexpr (Rule::over == LossOver::sequences)
            return lower_sequence_loss<decltype(type)>(context, def, rule);
          else if constexpr (Rule::over == LossOver::samples)
            return lower_samples<decltype(type)>(context, def, rule);
          else
            return lower_rule<decltype(type)>(context, def, rule);
        },
        def.rule);
  });
}

}  // namespace trainctl::cpu
