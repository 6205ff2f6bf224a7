// Computes losses and their gradients by their rules, in one kernel over the predictions' rows. A loss is a sum over
// samples.
#include "core/graph/ops/losses/losses.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/training/loss_rows.h"
#include "core/backend/cuda/ops/training/sequences.h"

namespace trainctl::cuda {
namespace {

// All values of a sample at all its positions, processed by a block; dx is null in evaluation.
struct SampleRow {
  LossRow<AnyType> own;
  const float* weights;  // weights of the positions; null if all positions have weight 1
  int each;              // number of values of a position

  __device__ bool trains() const { return own.trains(); }
  __device__ static float sigmoid(float value) { return Math::sigmoid(value); }
  __device__ float weight(int k) const { return weights != nullptr ? weights[k / each] : 1.0f; }
  template <int n, class Term>
  __device__ Sums<n> sums(const Term& term) const {
    return own.sums<n>([&](int k, float value) {
      const float share = weight(k);
      if (share == 0) return Sums<n>{};  // such positions may hold any values
      Sums<n> terms = term(k, value);
#pragma unroll
      for (int i = 0; i < n; ++i) terms.of[i] *= share;
      return terms;
    });
  }
  template <class Value>
  __device__ void write(const Value& value) const {
    own.write([&](int k, float x) {
      const float share = weight(k);
      return share == 0 ? 0.0f : share * value(k, x);
    });
  }
};

// The loss of a row. In training also writes the row's gradient times the weight.
template <class Rule, class R>
__device__ float row_loss(const Rule& rule, const R& row, int values, const LossTarget& target, float weight) {
  if constexpr (Rule::over == LossOver::elements) {
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

// dx is null in evaluation, `count` is null if another loss counts the samples, and `of_all` is null if predictions are
// for all classes. A row of weight 0 may hold any values. A label outside of the classes makes the loss NaN.
template <class T, class Rule>
__global__ void losses(RowGrid grid, Rule rule, Smoothing smoothing, ColumnRange range, bool accumulate, float scale,
                       std::int64_t rows_each, Read<T> x, const void* targets, const float* weights,
                       const float* of_all, int ranks, Write<T> dx, float* of_rows, unsigned* counter, float* sum,
                       float* count) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const LossRow<T> own{team, x + row * grid.values, dx != nullptr ? dx + row * grid.values : dx};
    float weight = weights[rows_each == 1 ? row : row / rows_each], loss = 0;
    if (weight == 0) {
      if (own.trains()) team.fill(own.dx, [](int) { return 0.0f; });
    } else {
      bool valid = true;
      const LossTarget target = loss_target<Rule>(targets, row, range, smoothing, valid);
      if (!valid) weight = NAN;
      if constexpr (Rule::over != LossOver::classes) {
        loss = weight * row_loss(rule, own, grid.values, target, weight * scale);
      } else if (of_all != nullptr) {
        const PartOfRow<T> split{own, of_all + row * ranks * class_sums, ranks};
        loss = weight * row_loss(rule, split, grid.values, target, weight * scale);
      } else {
        loss = weight * row_loss(rule, own, grid.values, target, weight * scale);
      }
    }
    if (team.leads()) of_rows[row] = loss;
  }
  if (!last_block(counter, gridDim.x)) return;
  sum_in_block(of_rows, grid.rows, accumulate, sum);
  if (count != nullptr) sum_in_block(weights, grid.rows / rows_each, accumulate, count);
}

// A block processes a sample. A sample has `weights_each` weights: one for each position, or one for the whole sample.
template <class Rule>
__global__ void sample_losses(RowGrid grid, Rule rule, Smoothing smoothing, bool accumulate, float scale, int positions,
                              int weights_each, Read<AnyType> x, const float* targets, const float* weights,
                              Write<AnyType> dx, float* of_samples, unsigned* counter, float* sum, float* count) {
  const RowTeam team(grid);
  for (std::int64_t sample = team.first(); sample < grid.rows; sample += team.step()) {
    const LossRow<AnyType> own{team, x + sample * grid.values, dx != nullptr ? dx + sample * grid.values : dx};
    const float* const shares = weights + sample * weights_each;
    float weight = *shares * static_cast<float>(positions), loss = 0;  // sums over all positions
    if (weights_each > 1) {
      weight = 0;
      for (int i = static_cast<int>(threadIdx.x); i < positions; i += block_threads) weight += shares[i];
      weight = team.sum(weight);
    }
    if (weight == 0) {
      if (own.trains()) team.fill(own.dx, [](int) { return 0.0f; });
    } else {
      const SampleRow row{own, weights_each > 1 ? shares : nullptr, grid.values / positions};
      loss = weight * rule.row(row, LossTarget{targets + sample * grid.values, 0, smoothing}, weight * scale);
    }
    if (team.leads()) of_samples[sample] = loss;
  }
  if (!last_block(counter, gridDim.x)) return;
  sum_in_block(of_samples, grid.rows, accumulate, sum);
  if (count != nullptr) sum_in_block(weights, grid.rows * weights_each, accumulate, count);
}

template <class Rule>
Lowering lower_samples(const LowerContext& context, const Loss& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  RowGrid grid(shape[0], shape.count() / shape[0]);
  grid.team = block_threads;
  grid.blocks = blocks_for(grid.rows * grid.team);
  const int positions = static_cast<int>(shape.rows() / shape[0]);
  const int weights_each = static_cast<int>(context.input(2).shape.count() / shape[0]);
  const auto run = [=, smoothing = rule.smoothing(shape.back()), training = def.training, accumulate = def.accumulate,
                    scale = def.scale, counts = def.counts, gradient = static_cast<std::size_t>(def.sums()),
                    dtype = context.input(0).dtype, counter = make_counters(1)](const Buffers& p) {
    launch(sample_losses<Rule>, grid.blocks, block_threads, p.stream, grid, rule, smoothing, accumulate, scale,
           positions, weights_each, read<AnyType>(p.in<void>(0), dtype), p.in<float>(1), p.in<float>(2),
           write<AnyType>(training ? p.out<void>(gradient) : nullptr, dtype), p.workspace<float>(), counter.get(),
           p.out<float>(0), counts ? p.out<float>(1) : nullptr);
  };
  return own_kernel(context, run, grid.rows * size_of(DType::float32));
}

template <class T, class Rule>
Lowering lower_rule(const LowerContext& context, const Loss& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const RowGrid grid(shape.rows(), shape.back());
  const std::int64_t rows_each = rows_per_weight(shape, context.input(2).shape);
  const ColumnRange range = def.columns.value_or(ColumnRange{0, grid.values});
  const std::size_t sums = def.of_sums ? 0 : 3;  // the input with the class sums
  const int ranks = def.columns ? static_cast<int>(context.input(sums).shape.back()) / class_sums : 0;
  const auto run = [=, smoothing = rule.smoothing(range.of), training = def.training, accumulate = def.accumulate,
                    scale = def.scale, counts = def.counts, gradient = static_cast<std::size_t>(def.sums()),
                    dtype = context.input(0).dtype, counter = make_counters(1)](const Buffers& p) {
    launch(losses<T, Rule>, grid.blocks, block_threads, p.stream, grid, rule, smoothing, range, accumulate, scale,
           rows_each, read<T>(p.in<void>(0), dtype), p.in<void>(1), p.in<float>(2),
           ranks > 0 ? p.in<float>(sums) : nullptr, ranks, write<T>(training ? p.out<void>(gradient) : nullptr, dtype),
           p.workspace<float>(), counter.get(), p.out<float>(0), counts ? p.out<float>(1) : nullptr);
  };
  return own_kernel(context, run, grid.rows * size_of(DType::float32));
}

template <class T, class Rule>
__global__ void sum_classes(RowGrid grid, Smoothing smoothing, ColumnRange range, const T* x, const void* targets,
                            float* sums) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const LossRow<T> own{team, x + row * grid.values, nullptr};
    write_class_sums<Rule>(own, own.largest(), row, targets, range, smoothing, sums + row * class_sums);
  }
}

template <class T, class Rule>
Lowering lower_sums(const LowerContext& context, const ColumnRange& range, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const RowGrid grid(shape.rows(), shape.back());
  return own_kernel(context, [=, smoothing = rule.smoothing(range.of)](const Buffers& p) {
    launch(sum_classes<T, Rule>, grid.blocks, block_threads, p.stream, grid, smoothing, range, p.in<T>(0),
           p.in<void>(1), p.out<float>(0));
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

// Losses over classes have a kernel for each dtype, because their rows may be the largest tensors of a language model.
Lowering lower_loss(const LowerContext& context) {
  const auto& def = context.op.as<Loss>();
  return std::visit(
      [&]<class Rule>(const Rule& rule) {
        if constexpr (Rule::over == LossOver::sequences) {
          return with_type(context.input(0).dtype,
                           [&](auto type) { return lower_sequence_loss<decltype(type)>(context, def, rule); });
        } else if constexpr (Rule::over == LossOver::classes) {
          return with_type(context.input(0).dtype,
                           [&](auto type) { return lower_rule<decltype(type)>(context, def, rule); });
        } else if constexpr (Rule::over == LossOver::samples) {
          return lower_samples(context, def, rule);
        } else {
          return lower_rule<AnyType>(context, def, rule);
        }
      },
      def.rule);
}

}  // namespace trainctl::cuda
