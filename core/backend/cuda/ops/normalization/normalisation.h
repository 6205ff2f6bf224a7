// Device functions, kernels and grids that the ops of batch normalisation share: statistics, the factors of a channel,
// and the pass over elements.
//
// Statistics are computed by stripes of rows, relative to the stripe's first row (shifted sums). The stripes' means and
// sums of squares are combined in float64, so that a large mean does not make the variance less precise. The passes
// after the sums process the rows in reverse order, since the rows that the sums read last may still be in the cache.
#pragma once

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/lower.h"
#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl::cuda {

// A stripe's mean and sum of squares about that mean, or two sums; indexed by stripe, then channel.
using Partials = float2*;

template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    statistics(ChannelGrid grid, const T* __restrict__ x, Partials partials, unsigned* counters, float* mean,
               float* variance) {
  const ChannelThread at(grid);
  const std::int64_t stripe = blockIdx.y;
  const T* first_row = x + stripe * grid.lanes() * grid.channels;
  float values[2][width] = {};
  if (at.inside) {
    const Pack<T, width> shift = pack_at<width>(first_row + at.channel);
    const auto read = [&](std::int64_t offset) { return pack_at<width>(x + offset); };
    each_offset<4>(grid, at, read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float shifted = load(pack.values[k]) - load(shift.values[k]);
        values[0][k] += shifted;
        values[1][k] += shifted * shifted;
      }
    });
  }
  float sums[2];
  sum_lanes(values, grid.tile, sums);
  const std::int64_t channel = own_channel(grid);
  if (channel >= 0) {
    const auto rows = static_cast<float>(grid.rows_of(stripe));
    partials[stripe * grid.channels + channel] = {load(first_row[channel]) + sums[0] / rows,
                                                  sums[1] - sums[0] * sums[0] / rows};
  }
  if (!last_block(counters + blockIdx.x, gridDim.y)) return;

  // Means and sums of squares relative to the first stripe's mean.
  double joined[2][1] = {}, totals[2];
  double first_mean = 0;
  if (const std::int64_t own = joined_channel(grid); own >= 0) {
    first_mean = fresh(partials + own).x;
    const auto read = [&](std::int64_t s) { return fresh(partials + s * grid.channels + own); };
    each<8>(joined_first(grid), grid.stripes, joined_step(grid), read, [&](std::int64_t s, const float2& partial) {
      const double shifted = partial.x - first_mean, rows = static_cast<double>(grid.rows_of(s));
      joined[0][0] += rows * shifted;
      joined[1][0] += partial.y + rows * shifted * shifted;
    });
  }
  sum_lanes(joined, grid.span(), totals);
  if (channel < 0) return;
  const double shifted = totals[0] / static_cast<double>(grid.rows);
  const double squares = totals[1] / static_cast<double>(grid.rows) - shifted * shifted;
  mean[channel] = static_cast<float>(first_mean + shifted);
  variance[channel] = squares < 0 ? 0.0f : static_cast<float>(squares);  // NaN stays NaN
}

// The vectors of a normalisation. gamma and beta may be null; the mean is null if it is zero.
struct Normalisation {
  const float *mean, *variance, *gamma, *beta;
  float epsilon;
  bool relu;
};

// The factors of a thread's channels.
template <int width>
struct Factors {
  float mean[width] = {}, scale[width], beta[width] = {};

  __device__ Factors(const Normalisation& n, std::int64_t channel) {
    float variances[width], gammas[width];
    if (n.mean != nullptr) read_channels(n.mean, channel, mean);
    read_channels(n.variance, channel, variances);
    if (n.gamma != nullptr) read_channels(n.gamma, channel, gammas);
    if (n.beta != nullptr) read_channels(n.beta, channel, beta);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float inverse = rsqrtf(variances[k] + n.epsilon);
      scale[k] = n.gamma != nullptr ? gammas[k] * inverse : inverse;
    }
  }

  // Channel k's value before residual and ReLU. Each operation is rounded, without fused multiply-add, so that the
  // backward pass computes the same bits as the forward pass, and the GPU the same bits as the CPU.
  __device__ float normalised(float x, int k) const { return __fadd_rn(__fmul_rn(x - mean[k], scale[k]), beta[k]); }
};

// The number of rows that a thread reads before it uses the first; more would not fit into its registers.
constexpr int rows_in_flight = 2;
constexpr int in_flight(int width) { return width == 8 ? 1 : rows_in_flight; }

// The pack width of kernels that keep several factors of each channel in registers: in half precision half of the
// widest access, so that the factors and the rows in flight fit.
template <int widest_pack>
inline constexpr int narrower = widest_pack == 1 ? 1 : 4;

constexpr int bits_of_byte = 8;  // pack width of kernels that write or read a mask

// y = f((x - mean) * scale + beta [+ residual]); y may be x. Packs of 8 write the mask, y > 0, if it is not null.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    normalise(ChannelGrid grid, Normalisation n, const T* x, const T* residual, T* y, std::uint8_t* mask) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  const Factors<width> factors(n, at.channel);
  struct Pair {
    Pack<T, width> x, residual;
  };
  const std::int64_t mirror = (grid.rows - 1) * grid.channels + 2 * at.channel;  // from the last row to the first
  const auto read = [&](std::int64_t mirrored) {
    const std::int64_t offset = mirror - mirrored;
    const Pack<T, width> xs = pack_at<width>(x + offset);
    return Pair{xs, residual != nullptr ? pack_at<width>(residual + offset) : xs};
  };
  each_offset<in_flight(width)>(grid, at, read, [&](std::int64_t mirrored, const Pair& pair) {
    const std::int64_t offset = mirror - mirrored;
    Pack<T, width> ys;
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      float value = factors.normalised(load(pair.x.values[k]), k);
      if (residual != nullptr) value += load(pair.residual.values[k]);
      ys.values[k] = store<T>(n.relu && value < 0 ? 0.0f : value);
      if constexpr (width == bits_of_byte) bits |= load(ys.values[k]) > 0 ? 1u << k : 0u;
    }
    pack_at<width>(y + offset) = ys;
    if constexpr (width == bits_of_byte) {
      if (mask != nullptr) mask[offset / bits_of_byte] = static_cast<std::uint8_t>(bits);
    }
  });
}

// The grids of an op: one for its sums, and one for the pass over elements after the sums. All blocks of the first grid
// run at the same time, and one of them adds up the results of all blocks.
struct Grids {
  ChannelGrid sums, elements;

  // The grids for x, with packs of these widths of type T.
  template <class T>
  static Grids of(const Shape& x, const Device& device, int sums_width, int elements_width) {
    const std::int64_t rows = x.count() / x.back(), processors = device.processors();
    return {ChannelGrid(rows, x.back(), sums_width, sizeof(T), 2 * processors, rows_in_flight),
            ChannelGrid(rows, x.back(), elements_width, sizeof(T), 8 * processors, rows_in_flight)};
  }
  std::int64_t partials_bytes() const {
    return sums.stripes * sums.channels * static_cast<std::int64_t>(sizeof(float2));
  }
  std::int64_t means_bytes() const { return sums.channels * static_cast<std::int64_t>(sizeof(float2)); }
};

}  // namespace trainctl::cuda
