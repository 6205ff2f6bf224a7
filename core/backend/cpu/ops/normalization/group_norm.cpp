// Group normalisation, forward and backward.
//
// The sums of a group's columns are combined to the group's statistics. Two passes over a chunk compute the means and
// the sums of squares about them, which are then combined in float64.
#include "core/graph/ops/normalization/group_norm.h"

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/normalization/grouped_samples.h"
#include "core/backend/cpu/simd/narrowing.h"

namespace trainctl::cpu {
namespace {

// Writes two rows: each column's mean and factor, from the statistics of a sample's groups. gamma may be null.
TRAINCTL_INLINE inline void fill_factors(const GroupedSamples& shape, float* rows, const float* mean, const float* rstd,
                                         const float* gamma) {
  fill_columns(shape, rows, [=](std::int64_t group, std::int64_t) TRAINCTL_INLINE { return mean[group]; });
  fill_columns(shape, rows + shape.each.columns(), [=](std::int64_t group, std::int64_t c) TRAINCTL_INLINE {
    return rstd[group] * (gamma ? gamma[c] : 1.0f);
  });
}

// The steps of the forward pass; gamma and beta may be null.
template <class T>
struct Forward {
  GroupedSamples shape;
  float epsilon;
  const T* x;
  const float *gamma, *beta;
  T* y;
  float *mean, *rstd;
  std::byte* memory;

  TRAINCTL_INLINE void begin(std::int64_t) const {}

  // Computes each column's mean in a chunk, and its sum of squares about that mean.
  TRAINCTL_INLINE void sum(std::int64_t sample, std::int64_t chunk) const {
    const ChannelShape& each = shape.each;
    const T* xs = x + sample * shape.values();
    const std::int64_t columns = each.columns(), first_row = chunk * each.chunk_rows, rows = each.rows_of(chunk);
    float* means = SampleScratch(each, memory, sample).partials + 2 * chunk * columns;
    float* squares = means + columns;
    const auto count = static_cast<float>(rows);
    const auto value = [=](std::int64_t i, std::int64_t) TRAINCTL_INLINE { return Pair{load(xs[i]), 0.0f}; };
    const auto distance = [=](std::int64_t i, std::int64_t c) TRAINCTL_INLINE {
      const float d = load(xs[i]) - means[c];
      return Pair{d, d * d};
    };
    each_tile(columns, [&](std::int64_t column, auto width) TRAINCTL_INLINE {
      float rest[width()], about[width()];
      tile_sums<width()>(first_row, rows, columns, column, value, means + column, rest);
      for (std::int64_t c = column; c < column + width(); ++c) means[c] /= count;
      tile_sums<width()>(first_row, rows, columns, column, distance, rest, about);
      for (std::int64_t k = 0; k < width(); ++k) {  // corrects the rounding of the mean
        squares[column + k] = about[k] - rest[k] * rest[k] / count;
        means[column + k] += rest[k] / count;
      }
    });
  }

  // Combines the chunks to the statistics of the groups.
  TRAINCTL_INLINE void join(std::int64_t sample) const {
    const ChannelShape& each = shape.each;
    const SampleScratch scratch(each, memory, sample);
    const std::int64_t channels = each.channels, width = shape.group_channels(), first_group = sample * shape.groups;
    const double values = shape.group_values();
    double *averages = scratch.first, *squares = scratch.second;
    std::fill(averages, averages + 2 * channels, 0.0);
    each_chunk_sums(each, scratch, [=](double rows, const float* means, const float*) TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) averages[c] += rows * means[c];
    });
    for (std::int64_t first = 0; first < channels; first += width) {
      const auto total = [=](std::int64_t k) TRAINCTL_INLINE { return averages[first + k]; };
      const double average = lane_sum<double>(width, total) / values;
      std::fill(averages + first, averages + first + width, average);
    }
    each_chunk_sums(each, scratch, [=](double rows, const float* means, const float* about) TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) {
        const double distance = means[c] - averages[c];
        squares[c] += about[c] + rows * distance * distance;
      }
    });
    for (std::int64_t group = 0; group < shape.groups; ++group) {
      const auto total = [=](std::int64_t k) TRAINCTL_INLINE { return squares[group * width + k]; };
      double variance = lane_sum<double>(width, total) / values;
      variance = variance < 0 ? 0.0 : variance;  // NaN stays NaN
      mean[first_group + group] = static_cast<float>(averages[group * width]);
      rstd[first_group + group] = static_cast<float>(1.0 / std::sqrt(variance + epsilon));
    }
    fill_factors(shape, scratch.constants, mean + first_group, rstd + first_group, gamma);
    fill_columns(shape, scratch.constants + 2 * each.columns(),
                 [b = beta](std::int64_t, std::int64_t c) TRAINCTL_INLINE { return b ? b[c] : 0.0f; });
  }

  TRAINCTL_INLINE void apply(std::int64_t sample, std::int64_t chunk) const {
    const std::int64_t columns = shape.each.columns();
    const float* average = SampleScratch(shape.each, memory, sample).constants;
    const float *scale = average + columns, *shift = scale + columns;
    each_chunk_row(shape.each, chunk, [=, this](std::int64_t offset) TRAINCTL_INLINE {
      const T* xs = x + sample * shape.values() + offset;
      store_each(y + sample * shape.values() + offset, 0, columns,
                 [=](std::int64_t c) TRAINCTL_INLINE { return (load(xs[c]) - average[c]) * scale[c] + shift[c]; });
    });
  }
};

// The steps of the backward pass.
template <class T>
struct Gradient {
  GroupedSamples shape;
  NormBackward<T> b;
  std::byte* memory;

  TRAINCTL_INLINE void begin(std::int64_t sample) const {
    const std::int64_t first_group = sample * shape.groups;
    fill_factors(shape, SampleScratch(shape.each, memory, sample).constants, b.mean + first_group, b.rstd + first_group,
                 b.gamma);
  }

  // Computes the sums of dy and of dy (x - mean) over each column of a chunk.
  TRAINCTL_INLINE void sum(std::int64_t sample, std::int64_t chunk) const {
    const ChannelShape& each = shape.each;
    const SampleScratch scratch(each, memory, sample);
    const T *dys = b.dy + sample * shape.values(), *xs = b.x + sample * shape.values();
    const std::int64_t columns = each.columns();
    float* sums = scratch.partials + 2 * chunk * columns;
    const auto term = [=, average = scratch.constants](std::int64_t i, std::int64_t c) TRAINCTL_INLINE {
      const float gradient = load(dys[i]);
      return Pair{gradient, gradient * (load(xs[i]) - average[c])};
    };
    each_tile(columns, [&](std::int64_t column, auto width) TRAINCTL_INLINE {
      tile_sums<width()>(chunk * each.chunk_rows, each.rows_of(chunk), columns, column, term, sums + column,
                         sums + columns + column);
    });
  }

  // Combines the chunks to the factors of dx, and writes the sample's terms of dbeta and dgamma to the totals.
  TRAINCTL_INLINE void join(std::int64_t sample) const {
    const ChannelShape& each = shape.each;
    const SampleScratch scratch(each, memory, sample);
    const std::int64_t channels = each.channels, width = shape.group_channels();
    double *gradients = scratch.first, *products = scratch.second;
    std::fill(gradients, gradients + 2 * channels, 0.0);
    each_chunk_sums(each, scratch, [=](double, const float* first, const float* second) TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) {
        gradients[c] += first[c];
        products[c] += second[c];
      }
    });
    float *offset = scratch.constants + 2 * each.columns(), *slope = offset + each.columns();
    for (std::int64_t group = 0; group < shape.groups; ++group) {
      const std::int64_t first = group * width;
      const auto weight = [=, this](std::int64_t k) TRAINCTL_INLINE { return b.gamma ? b.gamma[first + k] : 1.0f; };
      const auto gradient = [=](std::int64_t k) TRAINCTL_INLINE { return weight(k) * gradients[first + k]; };
      const auto product = [=](std::int64_t k) TRAINCTL_INLINE { return weight(k) * products[first + k]; };
      const double inverse = b.rstd[sample * shape.groups + group], share = inverse / shape.group_values();
      const auto by_mean = static_cast<float>(share * lane_sum<double>(width, gradient));
      const auto by_deviation = static_cast<float>(share * inverse * inverse * lane_sum<double>(width, product));
      std::fill(offset + first, offset + first + width, by_mean);
      std::fill(slope + first, slope + first + width, by_deviation);
      for (std::int64_t c = first; c < first + width; ++c) products[c] *= inverse;
    }
    for (std::int64_t column = channels; column < each.columns(); column += channels) {
      std::copy(offset, offset + channels, offset + column);
      std::copy(slope, slope + channels, slope + column);
    }
  }

  TRAINCTL_INLINE void apply(std::int64_t sample, std::int64_t chunk) const {
    const std::int64_t columns = shape.each.columns();
    const float* average = SampleScratch(shape.each, memory, sample).constants;
    const float *scale = average + columns, *offset = scale + columns, *slope = offset + columns;
    each_chunk_row(shape.each, chunk, [=, this](std::int64_t row) TRAINCTL_INLINE {
      const std::int64_t start = sample * shape.values() + row;
      const T *dys = b.dy + start, *xs = b.x + start;
      store_each(b.dx + start, 0, columns, [=](std::int64_t c) TRAINCTL_INLINE {
        return load(dys[c]) * scale[c] - offset[c] - (load(xs[c]) - average[c]) * slope[c];
      });
    });
  }
};

// Adds up the samples' terms of dgamma and dbeta. Both pointers may be null.
void sum_samples(const GroupedSamples& shape, std::byte* memory, bool accumulate, float* dgamma, float* dbeta) {
  const std::int64_t grain =
      std::max<std::int64_t>(widest_tile, element_grain / std::max<std::int64_t>(1, shape.count));
  parallel_ranges(shape.each.channels, grain, [=, &shape](std::int64_t begin, std::int64_t end) {
    simd([=, &shape]() TRAINCTL_INLINE {
      each_tile(end - begin, [=, &shape](std::int64_t column, auto width) TRAINCTL_INLINE {
        const std::int64_t first = begin + column;
        double gammas[width()] = {}, betas[width()] = {};
        for (std::int64_t sample = 0; sample < shape.count; ++sample) {
          const SampleScratch scratch(shape.each, memory, sample);
#pragma omp simd
          for (std::int64_t k = 0; k < width(); ++k) {
            betas[k] += scratch.first[first + k];
            gammas[k] += scratch.second[first + k];
          }
        }
        const auto write = [=](const double* sums, float* totals) TRAINCTL_INLINE {
          for (std::int64_t k = 0; totals != nullptr && k < width(); ++k) {
            totals[first + k] = static_cast<float>((accumulate ? totals[first + k] : 0.0) + sums[k]);
          }
        };
        write(gammas, dgamma);
        write(betas, dbeta);
      });
    });
  });
}

}  // namespace

Lowering lower_group_norm(const LowerContext& context) {
  const GroupNormAttributes a = context.op.as<GroupNorm>().a;
  const GroupedSamples shape(context.input(0).shape, a.groups);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const float* gamma = a.scale ? buffers.in<float>(1) : nullptr;
          const float* beta = a.center ? buffers.in<float>(a.scale ? 2 : 1) : nullptr;
          run_steps(shape, Forward<T>{shape, a.epsilon, buffers.in<T>(0), gamma, beta, buffers.out<T>(0),
                                      buffers.out<float>(1), buffers.out<float>(2), buffers.workspace<std::byte>()});
        },
        shape.count * SampleScratch::bytes(shape.each));
  });
}

Lowering lower_group_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<GroupNormGrad>();
  const GroupedSamples shape(context.input(1).shape, def.a.groups);
  return with_type(context.input(1).dtype, [&, a = def.a, accumulate = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const NormBackward<T> b(buffers, a);
          auto* memory = buffers.workspace<std::byte>();
          run_steps(shape, Gradient<T>{shape, b, memory});
          if (b.dgamma || b.dbeta) sum_samples(shape, memory, accumulate, b.dgamma, b.dbeta);
        },
        shape.count * SampleScratch::bytes(shape.each));
  });
}

}  // namespace trainctl::cpu
