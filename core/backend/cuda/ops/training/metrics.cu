// Computes metrics by their rules: weighted sums over samples, in a fixed order.
#include "core/graph/ops/metrics/metrics.h"

#include <algorithm>

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/rows.h"
#include "core/backend/cuda/device/rule_math.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/training/sequences.h"
#include "core/graph/ops/losses/losses.h"

namespace trainctl::cuda {
namespace {

// The index of the first of the largest values. As with std::max_element, the index of a NaN is returned only if the
// NaN is the first value.
template <class Values>
__device__ int first_largest_of(const RowTeam& team, const Values& x) {
  float top = -INFINITY;
  int best = INT_MAX;
  team.each(x, [&](int k, float value) {
    if (isnan(value)) value = k == 0 ? INFINITY : -INFINITY;
    if (value > top || best == INT_MAX) top = value, best = k;
  });
  const float largest = team.largest(top);
  return team.smallest(top == largest ? best : INT_MAX);
}

// The target of a row that a team processes: a class, or a row of values.
struct MetricTarget {
  const RowTeam& team;
  const std::int32_t* class_number;  // null if the target is values
  const float* row;

  __device__ float operator()(std::int64_t k) const { return row[k]; }
  __device__ bool is_class_number() const { return class_number != nullptr; }
  __device__ int label() const { return class_number != nullptr ? *class_number : first_largest_of(team, row); }
};

// Predictions, whose dtype a kernel gets as an argument.
using Predictions = AnyValues<const void>;

// A row of predictions of a sample, or of one of its positions, processed by a team.
struct MetricRow {
  using Math = cuda::Math;
  const RowTeam& team;
  Predictions x;
  int values;
  bool of_sums;  // x are the class sums of all ranks

  __device__ static float root(float value) { return sqrtf(value); }
  __device__ static float exp(float value) { return expf(value); }
  __device__ float at(std::int64_t k) const { return x[k]; }
  __device__ int first_largest() const {
    if (!of_sums) return first_largest_of(team, x);
    int best = 0;
    for (int rank = 0; rank < values; rank += class_sums) {
      if (x[rank + class_largest] > x[best + class_largest]) best = rank;
    }
    return static_cast<int>(x[best + class_best]);
  }
  template <class Term>
  __device__ float sum(const Term& term) const {
    float sum = 0;
    team.each(x, [&](int k, float value) { sum += term(k, value); });
    return team.sum(sum);
  }
  template <class Term>
  __device__ float largest(const Term& term) const {  // ignores NaN
    float top = -INFINITY;
    team.each(x, [&](int k, float value) { top = fmaxf(top, term(k, value)); });
    return team.largest(top);
  }
};

// The target of row `row`.
__device__ MetricTarget metric_target(const RowTeam& team, const void* targets, bool class_numbers, std::int64_t row,
                                      int values) {
  if (class_numbers) return {team, static_cast<const std::int32_t*>(targets) + row, nullptr};
  return {team, nullptr, static_cast<const float*>(targets) + row * values};
}

template <class Rule>
__global__ void sum_rows(RowGrid grid, Rule rule, bool class_numbers, bool of_sums, bool accumulate,
                         std::int64_t rows_each, Predictions x, const void* targets, const float* weights,
                         float* of_rows, unsigned* counter, float* sum) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    float value = 0;
    if (const float weight = weights[rows_each == 1 ? row : row / rows_each]; weight != 0) {
      const MetricTarget target = metric_target(team, targets, class_numbers, row, grid.values);
      value = weight * rule.row(MetricRow{team, x + row * grid.values, grid.values, of_sums}, target);
    }
    if (team.leads()) of_rows[row] = value;
  }
  if (last_block(counter, gridDim.x)) sum_in_block(of_rows, grid.rows, accumulate, sum);
}

// Each team has its own sums in of_teams, and each of its threads adds to the sums of its share of the outputs. The
// last block adds up the teams' sums; if there are fewer sums than threads, several threads add up each sum.
template <class Rule>
__global__ void sum_outputs(RowGrid grid, Rule rule, bool class_numbers, bool accumulate, std::int64_t rows_each,
                            Predictions x, const void* targets, const float* weights, float* of_teams,
                            unsigned* counter, float* sums) {
  const RowTeam team(grid);
  const int n = rule.sums();
  float* const own = of_teams + team.first() * n;
  team.each(x, [&](int k, float) {  // x does not matter: the share is the same for each row
#pragma unroll
    for (int i = 0; i < Rule::terms; ++i) own[i * grid.values + k] = 0;
  });
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    const float weight = weights[rows_each == 1 ? row : row / rows_each];
    if (weight == 0) continue;
    const MetricTarget target = metric_target(team, targets, class_numbers, row, grid.values);
    const Predictions values = x + row * grid.values;
    const auto of_output = rule.of_outputs(MetricRow{team, values, grid.values, false}, target);
    team.each(values, [&](int k, float value) {
      const Sums<Rule::terms> terms = of_output(k, value);
#pragma unroll
      for (int i = 0; i < Rule::terms; ++i) own[i * grid.values + k] += weight * terms.of[i];
    });
  }
  if (!last_block(counter, gridDim.x)) return;
  __shared__ float parts[block_threads];
  const int thread = static_cast<int>(threadIdx.x), teams = static_cast<int>(team.step());
  for (int first = 0; first < n; first += block_threads) {
    const int width = n - first < block_threads ? n - first : block_threads;
    const int each = n < block_threads ? block_threads / n : 1;  // threads for each sum
    const int i = first + thread % width, part = thread / width;
    float sum = 0;
    if (part < each) {
#pragma unroll 8
      for (int other = part; other < teams; other += each) sum += fresh(of_teams + std::int64_t{other} * n + i);
    }
    parts[thread] = sum;
    __syncthreads();
    if (part == 0) {
      for (int other = 1; other < each; ++other) sum += parts[other * width + thread];
      sums[i] = accumulate ? sums[i] + sum : sum;
    }
    __syncthreads();
  }
}

// Adds up the threads' sums in twice the precision of float64; thread 0 receives the result.
__device__ PreciseSum precise_block_sum(PreciseSum own, PreciseSum* shared) {
  const unsigned thread = threadIdx.x;
  shared[thread] = own;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread].add(shared[thread + half]);
    __syncthreads();
  }
  const PreciseSum total = shared[0];
  __syncthreads();
  return total;
}

// Each block computes one sum after the other. A sum is over one term of one value of all rows, in twice the precision
// of float64.
template <class Rule>
__global__ void sum_exactly(Rule rule, std::int64_t rows, std::int64_t rows_each, std::int64_t values, bool accumulate,
                            Predictions x, const float* targets, const float* weights, float* sums) {
  __shared__ double shared_memory[2 * block_threads];
  auto* const shared = reinterpret_cast<PreciseSum*>(shared_memory);
  const std::int64_t count = Rule::terms * values;
  for (std::int64_t sum = blockIdx.x; sum < count; sum += gridDim.x) {
    const int term = static_cast<int>(sum / values);
    const std::int64_t k = sum % values;
    PreciseSum own;
    for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
      const float weight = weights[rows_each == 1 ? row : row / rows_each];
      if (weight == 0) continue;
      own.add_product(weight, rule.term(term, x[row * values + k], targets[row * values + k]));
    }
    const SumParts parts = parts_of(precise_block_sum(own, shared));
    for (int part = 0; threadIdx.x == 0 && part < sum_parts; ++part) {
      float& to = sums[part * count + sum];
      to = accumulate ? to + parts.of[part] : parts.of[part];
    }
  }
}

// The weight of a row, and the index of the sum to which it is added.
struct Share {
  int cell;
  float weight;
};

// Each team finds the cells of its rows. Each thread of the last block adds up the weights of its own cells, in the
// rows' order.
template <class Rule>
__global__ void sum_cells(RowGrid grid, Rule rule, bool class_numbers, bool accumulate, std::int64_t rows_each,
                          Predictions x, const void* targets, const float* weights, Share* of_rows, unsigned* counter,
                          float* sums) {
  const RowTeam team(grid);
  for (std::int64_t row = team.first(); row < grid.rows; row += team.step()) {
    Share share{0, weights[rows_each == 1 ? row : row / rows_each]};
    if (share.weight != 0) {
      const MetricTarget target = metric_target(team, targets, class_numbers, row, grid.values);
      share.cell = rule.cell(MetricRow{team, x + row * grid.values, grid.values, false}, target);
    }
    if (team.leads()) of_rows[row] = share;
  }
  if (!last_block(counter, gridDim.x)) return;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < rule.sums() && !accumulate; i += block_threads) sums[i] = 0;
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    const int cell = fresh(&of_rows[row].cell);
    if (cell % block_threads == thread) sums[cell] += fresh(&of_rows[row].weight);
  }
}

// Each thread owns some of a block's sums, and reads the elements of all threads; the last block adds up the blocks'
// sums.
template <class Rule>
__global__ void sum_elements(std::int64_t count, std::int64_t values_each, Rule rule, bool accumulate, Predictions x,
                             const float* targets, const float* weights, float* of_blocks, unsigned* counter,
                             float* sums) {
  __shared__ int indices[block_threads];
  __shared__ float shares[block_threads];
  const int n = rule.sums(), thread = static_cast<int>(threadIdx.x);
  float* own = of_blocks + static_cast<std::int64_t>(blockIdx.x) * n;
  for (int i = thread; i < n; i += block_threads) own[i] = 0;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_threads; first < count;
       first += element_stride()) {
    const std::int64_t element = first + thread;
    const float weight = element < count ? weights[element / values_each] : 0.0f;
    indices[thread] = weight == 0 ? -1 : rule.template place<Math>(x[element], targets[element]);
    shares[thread] = weight;
    __syncthreads();
    for (int i = thread; i < n; i += block_threads) {
      float sum = own[i];
      for (int other = 0; other < block_threads; ++other) sum += indices[other] == i ? shares[other] : 0.0f;
      own[i] = sum;
    }
    __syncthreads();
  }
  if (!last_block(counter, gridDim.x)) return;
  for (int i = thread; i < n; i += block_threads) {
    float sum = accumulate ? sums[i] : 0.0f;
    for (unsigned block = 0; block < gridDim.x; ++block)
      sum += fresh(of_blocks + static_cast<std::int64_t>(block) * n + i);
    sums[i] = sum;
  }
}

template <class Rule>
Lowering lower_rule(const LowerContext& context, const Metric& def, const Rule& rule) {
  const Shape& shape = context.input(0).shape;
  const std::int64_t rows = shape.rows(), count = shape.count(), values = shape.back();
  const std::int64_t rows_each = rows_per_weight(shape, context.input(2).shape);
  const bool accumulate = def.accumulate, of_sums = def.of_sums;
  const bool class_numbers = context.input(1).dtype == DType::int32;
  const DType dtype = context.input(0).dtype;
  if constexpr (Rule::over == MetricOver::elements) {
    const int blocks = blocks_for(count, 4, 256);
    const auto run = [=, counter = make_counters(1)](const Buffers& p) {
      launch(sum_elements<Rule>, blocks, block_threads, p.stream, count, values * rows_each, rule, accumulate,
             Predictions(p.in<void>(0), dtype), p.in<float>(1), p.in<float>(2), p.workspace<float>(), counter.get(),
             p.out<float>(0));
    };
    return own_kernel(context, run, std::int64_t{blocks} * rule.sums() * size_of(DType::float32));
  } else if constexpr (Rule::over == MetricOver::exact_outputs) {
    const int blocks = static_cast<int>(std::min<std::int64_t>(Rule::terms * values, 1024));
    return own_kernel(context, [=](const Buffers& p) {
      launch(sum_exactly<Rule>, blocks, block_threads, p.stream, rule, rows, rows_each, values, accumulate,
             Predictions(p.in<void>(0), dtype), p.in<float>(1), p.in<float>(2), p.out<float>(0));
    });
  } else if constexpr (Rule::over == MetricOver::cells) {
    const RowGrid grid(rows, values);
    const auto run = [=, counter = make_counters(1)](const Buffers& p) {
      launch(sum_cells<Rule>, grid.blocks, block_threads, p.stream, grid, rule, class_numbers, accumulate, rows_each,
             Predictions(p.in<void>(0), dtype), p.in<void>(1), p.in<float>(2), p.workspace<Share>(), counter.get(),
             p.out<float>(0));
    };
    return own_kernel(context, run, rows * static_cast<std::int64_t>(sizeof(Share)));
  } else if constexpr (Rule::over == MetricOver::outputs) {
    constexpr std::int64_t max_sums = 1 << 18, max_blocks = 1024;  // limits for all teams together
    RowGrid grid(rows, values);
    if (values > 128) grid.team = block_threads;
    const int teams_each = block_threads / grid.team;
    grid.blocks =
        blocks_for(rows * grid.team, 1, std::clamp<std::int64_t>(max_sums / (rule.sums() * teams_each), 1, max_blocks));
    const auto run = [=, counter = make_counters(1)](const Buffers& p) {
      launch(sum_outputs<Rule>, grid.blocks, block_threads, p.stream, grid, rule, class_numbers, accumulate, rows_each,
             Predictions(p.in<void>(0), dtype), p.in<void>(1), p.in<float>(2), p.workspace<float>(), counter.get(),
             p.out<float>(0));
    };
    return own_kernel(context, run, std::int64_t{grid.blocks} * teams_each * rule.sums() * size_of(DType::float32));
  } else {
    const RowGrid grid(rows, values);
    const auto run = [=, counter = make_counters(1)](const Buffers& p) {
      launch(sum_rows<Rule>, grid.blocks, block_threads, p.stream, grid, rule, class_numbers, of_sums, accumulate,
             rows_each, Predictions(p.in<void>(0), dtype), p.in<void>(1), p.in<float>(2), p.workspace<float>(),
             counter.get(), p.out<float>(0));
    };
    return own_kernel(context, run, rows * size_of(DType::float32));
  }
}

}  // namespace

Lowering lower_metric(const LowerContext& context) {
  const auto& def = context.op.as<Metric>();
  return std::visit(
      [&]<class Rule>(const Rule& rule) {
        if constexpr (Rule::over == MetricOver::sequences) {
          return with_type(context.input(0).dtype,
                           [&](auto type) { return lower_sequence_metric<decltype(type)>(context, def, rule); });
        } else {
          return lower_rule(context, def, rule);
        }
      },
      def.rule);
}

}  // namespace trainctl::cuda
