// Runs Adafactor over the flat regions. For each parameter it updates the row and column means of the squared
// gradients, computes the root mean square of the direction that follows from them, then takes the step. The order of
// all sums does not depend on the number of threads.
#include <algorithm>

#include "core/backend/cpu/ops/training/optimizer_step.h"
#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {
namespace {

// The number of rows that a thread processes at a time.
std::int64_t rows_of_grain(const Factors& factors) {
  return std::max<std::int64_t>(1, element_grain / factors.columns);
}

// The memory and the settings of a parameter in a step.
struct Parameter {
  const float* gradient;
  float* weight;
  float* kept;        // moving averages for each matrix: the row means, then the column means
  double* row_means;  // for each matrix, the mean of its row means
  Factors factors;
  float decay;

  std::int64_t all_rows() const { return factors.matrices * factors.rows; }
  float* columns_of(std::int64_t matrix) const {
    return kept + matrix * factors.of_matrix() + (factors.vector ? 0 : factors.rows);
  }
  float* row_of(std::int64_t row) const { return kept + row / factors.rows * factors.of_matrix() + row % factors.rows; }
  // The row's mean, divided by the mean of all row means of its matrix; 1 for a vector.
  float relative_row(std::int64_t row) const {
    return factors.vector ? 1.0f : static_cast<float>(*row_of(row) / row_means[row / factors.rows]);
  }
  std::int64_t grain() const { return rows_of_grain(factors); }
};

using AdafactorStep = Step<Adafactor>;

// Updates the row means, and computes the mean of the row means of each matrix.
void average_rows(const Adafactor& rule, const AdafactorStep& step, const Parameter& parameter) {
  const std::int64_t columns = parameter.factors.columns, rows = parameter.factors.rows;
  parallel_ranges(parameter.all_rows(), parameter.grain(), [&](std::int64_t begin, std::int64_t end) {
    simd([=, &rule, &step, &parameter]() TRAINCTL_INLINE {
      for (std::int64_t row = begin; row < end; ++row) {
        const float* const gradient = parameter.gradient + row * columns;
        const float scale = step.scale;
        const Adafactor own = rule;
        const auto square = [=](std::int64_t i)
                                TRAINCTL_INLINE { return static_cast<double>(own.square(gradient[i] * scale)); };
        float& kept = *parameter.row_of(row);
        kept = rule.average(step.factors, kept,
                            static_cast<float>(lane_sum<double>(columns, square) / static_cast<double>(columns)));
      }
    });
  });
  for (std::int64_t matrix = 0; matrix < parameter.factors.matrices; ++matrix) {
    const float* const means = parameter.row_of(matrix * rows);
    const auto mean = [=](std::int64_t i) TRAINCTL_INLINE { return static_cast<double>(means[i]); };
    parameter.row_means[matrix] = lane_sum<double>(rows, mean) / static_cast<double>(rows);
  }
}

constexpr std::int64_t column_block = 64;  // number of columns summed at a time: four cache lines of a row

// Updates the column means.
void average_columns(const Adafactor& rule, const AdafactorStep& step, const Parameter& parameter) {
  const std::int64_t columns = parameter.factors.columns, rows = parameter.factors.rows;
  const std::int64_t blocks = divide_up(columns, column_block);
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / (rows * column_block));
  parallel_ranges(parameter.factors.matrices * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    simd([=, &rule, &step, &parameter]() TRAINCTL_INLINE {
      const Adafactor own = rule;
      const float scale = step.scale;
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t matrix = block / blocks, first = block % blocks * column_block;
        const std::int64_t width = std::min(column_block, columns - first);
        const float* gradient = parameter.gradient + matrix * rows * columns + first;
        double sums[column_block] = {};
        for (std::int64_t row = 0; row < rows; ++row, gradient += columns) {
#pragma omp simd
          for (std::int64_t c = 0; c < width; ++c) sums[c] += static_cast<double>(own.square(gradient[c] * scale));
        }
        float* const kept = parameter.columns_of(matrix) + first;
        for (std::int64_t c = 0; c < width; ++c) {
          kept[c] = own.average(step.factors, kept[c], static_cast<float>(sums[c] / static_cast<double>(rows)));
        }
      }
    });
  });
}

// The root mean squares of the parameter after weight decay and of the direction of its step.
struct Lengths {
  float weight, direction;
};

Lengths lengths(const Adafactor& rule, const AdafactorStep& step, const Parameter& parameter, Squares* of_grains) {
  const std::int64_t columns = parameter.factors.columns, grain = parameter.grain(), rows = parameter.all_rows();
  const std::int64_t grains = divide_up(rows, grain);
  parallel_ranges(grains, 1, [&](std::int64_t begin, std::int64_t end) {
    simd([=, &rule, &step, &parameter]() TRAINCTL_INLINE {
      const Adafactor own = rule;
      const float scale = step.scale, rate = step.learning_rate, decay = parameter.decay;
      for (std::int64_t g = begin; g < end; ++g) {
        Squares sum;
        for (std::int64_t row = g * grain; row < std::min(rows, (g + 1) * grain); ++row) {
          const float* const gradient = parameter.gradient + row * columns;
          const float* const weights = parameter.weight + row * columns;
          const float* const means = parameter.columns_of(row / parameter.factors.rows);
          const float of_row = parameter.relative_row(row);
          const auto direction = [=](std::int64_t i) TRAINCTL_INLINE {
            const double u = own.direction(gradient[i] * scale, of_row, means[i]);
            return u * u;
          };
          const auto weight = [=](std::int64_t i) TRAINCTL_INLINE {
            const double w = own.decayed(rate, decay, weights[i]);
            return w * w;
          };
          sum.directions += lane_sum<double>(columns, direction);
          sum.weights += lane_sum<double>(columns, weight);
        }
        of_grains[g] = sum;
      }
    });
  });
  Squares sum;
  for (std::int64_t g = 0; g < grains; ++g) {
    sum.weights += of_grains[g].weights;
    sum.directions += of_grains[g].directions;
  }
  const auto count = static_cast<double>(rows * columns);
  return {static_cast<float>(std::sqrt(sum.weights / count)), static_cast<float>(std::sqrt(sum.directions / count))};
}

// Applies the weight decay and the step to the weights.
void move(const Adafactor& rule, const AdafactorStep& step, const Parameter& parameter, float rate) {
  const std::int64_t columns = parameter.factors.columns;
  parallel_ranges(parameter.all_rows(), parameter.grain(), [&](std::int64_t begin, std::int64_t end) {
    simd([=, &rule, &step, &parameter]() TRAINCTL_INLINE {
      const Adafactor own = rule;
      const float scale = step.scale, learning_rate = step.learning_rate, decay = parameter.decay;
      for (std::int64_t row = begin; row < end; ++row) {
        const float* const gradient = parameter.gradient + row * columns;
        float* const weights = parameter.weight + row * columns;
        const float* const means = parameter.columns_of(row / parameter.factors.rows);
        const float of_row = parameter.relative_row(row);
#pragma omp simd
        for (std::int64_t i = 0; i < columns; ++i) {
          const float direction = own.direction(gradient[i] * scale, of_row, means[i]);
          weights[i] = own.decayed(learning_rate, decay, weights[i]) - rate * direction;
        }
      }
    });
  });
}

}  // namespace

Lowering lower_factored(const LowerContext& context, const OptimizerUpdate& def, const Adafactor& rule) {
  std::int64_t matrices = 0, grains = 0;  // the maximum over all parameters
  for (const UpdateRange& range : def.ranges) {
    const Factors& factors = range.factors;
    matrices = std::max(matrices, factors.matrices);
    grains = std::max(grains, divide_up(factors.matrices * factors.rows, rows_of_grain(factors)));
  }
  const auto run = [=, ranges = def.ranges, weight_decay = def.weight_decay,
                    clip_norm = def.clip_norm](const Buffers& buffers) {
    const AdafactorStep step(buffers, rule, clip_norm);
    if (!step.apply) return;
    auto* const row_means = buffers.workspace<double>();
    auto* const squares = reinterpret_cast<Squares*>(row_means + matrices);
    for (const UpdateRange& range : ranges) {
      const Parameter parameter{buffers.in<float>(0) + range.offset,
                                buffers.out<float>(0) + range.offset,
                                buffers.out<float>(1) + range.factors.offset,
                                row_means,
                                range.factors,
                                range.decay ? weight_decay : 0.0f};
      if (!range.factors.vector) average_rows(rule, step, parameter);
      average_columns(rule, step, parameter);
      const Lengths found = lengths(rule, step, parameter, squares);
      move(rule, step, parameter, rule.rate(step.factors, step.learning_rate, found.weight, found.direction));
    }
  };
  const auto bytes = static_cast<std::int64_t>(sizeof(double)) * matrices;
  return own_kernel(context, run, bytes + static_cast<std::int64_t>(sizeof(Squares)) * grains);
}

}  // namespace trainctl::cpu
