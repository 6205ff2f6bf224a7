// The mean and the variance of each channel over the rows that a padding mask shows, for batch normalisation.
#pragma once

#include "core/backend/cuda/ops/normalization/normalisation.h"

namespace trainctl::cuda {

// The rows of a block's stripe that a padding mask shows.
struct ShownRows {
  std::int64_t first;  // the first of them; the number of all rows if there are none
  float count;
};

// Returns this block's rows to all of its threads, all of which must call this function.
__device__ inline ShownRows shown_rows(const ChannelGrid& grid, const std::uint8_t* shown) {
  __shared__ std::int64_t firsts[channel_threads];
  __shared__ int counts[channel_threads];
  const int thread = static_cast<int>(threadIdx.x);
  std::int64_t first = grid.rows;
  int count = 0;
  for (std::int64_t i = thread;; i += channel_threads) {
    const std::int64_t row = (blockIdx.y + i / grid.lanes() * grid.stripes) * grid.lanes() + i % grid.lanes();
    if (row >= grid.rows) break;
    if (shown[row] == 0) continue;
    first = std::min(first, row);
    ++count;
  }
  firsts[thread] = first;
  counts[thread] = count;
  for (int distance = channel_threads / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (thread >= distance) continue;
    firsts[thread] = std::min(firsts[thread], firsts[thread + distance]);
    counts[thread] += counts[thread + distance];
  }
  __syncthreads();
  return {firsts[0], static_cast<float>(counts[0])};
}

// The workspace of shown_statistics(): the partial results of all stripes, and the number of each stripe's rows that
// the mask shows, for each tile.
struct ShownPartials {
  Partials partials;
  float* counts;  // [stripes][tiles]

  static std::int64_t bytes(const ChannelGrid& grid) {
    return grid.stripes * (grid.channels * static_cast<std::int64_t>(sizeof(float2)) +
                           grid.tiles * static_cast<std::int64_t>(sizeof(float)));
  }
  ShownPartials(const ChannelGrid& grid, float2* workspace)
      : partials(workspace), counts(reinterpret_cast<float*>(workspace + grid.stripes * grid.channels)) {}
};

// Computes mean and biased variance like statistics(), and writes the number of rows that the mask shows to *count. If
// there are none, mean and variance are 0.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    shown_statistics(ChannelGrid grid, const T* __restrict__ x, const std::uint8_t* __restrict__ shown,
                     ShownPartials stripes, unsigned* counters, float* mean, float* variance, float* count) {
  const ChannelThread at(grid);
  const std::int64_t stripe = blockIdx.y;
  const ShownRows rows = shown_rows(grid, shown);
  const T* first_row = x + (rows.count > 0 ? rows.first : 0) * grid.channels;
  float values[2][width] = {};
  if (at.inside) {
    const Pack<T, width> shift = pack_at<width>(first_row + at.channel);
    struct Row {
      Pack<T, width> x;
      bool shown;
    };
    const auto read = [&](std::int64_t row) {
      return Row{pack_at<width>(x + row * grid.channels + at.channel), shown[row] != 0};
    };
    each<rows_in_flight>(at.first, grid.rows, at.step, read, [&](std::int64_t, const Row& row) {
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float shifted = row.shown ? load(row.x.values[k]) - load(shift.values[k]) : 0.0f;
        values[0][k] += shifted;
        values[1][k] += shifted * shifted;
      }
    });
  }
  float sums[2];
  sum_lanes(values, grid.tile, sums);
  const std::int64_t channel = own_channel(grid);
  if (channel >= 0) {
    const bool any = rows.count > 0;
    stripes.partials[stripe * grid.channels + channel] = {any ? load(first_row[channel]) + sums[0] / rows.count : 0.0f,
                                                          any ? sums[1] - sums[0] * sums[0] / rows.count : 0.0f};
  }
  if (threadIdx.x == 0) stripes.counts[stripe * grid.tiles + blockIdx.x] = rows.count;
  if (!last_block(counters + blockIdx.x, gridDim.y)) return;

  // The number of rows, and means and sums of squares of the stripes.
  double joined[3][1] = {}, totals[3];
  if (const std::int64_t own = joined_channel(grid); own >= 0) {
    struct Stripe {
      float2 partial;
      float rows;
    };
    const auto read = [&](std::int64_t s) {
      return Stripe{fresh(stripes.partials + s * grid.channels + own),
                    fresh(stripes.counts + s * grid.tiles + blockIdx.x)};
    };
    each<8>(joined_first(grid), grid.stripes, joined_step(grid), read, [&](std::int64_t, const Stripe& of) {
      const double of_rows = of.rows, of_mean = of.partial.x;
      joined[0][0] += of_rows * of_mean;
      joined[1][0] += of.partial.y + of_rows * of_mean * of_mean;
      joined[2][0] += of_rows;
    });
  }
  sum_lanes(joined, grid.span(), totals);
  if (channel < 0) return;
  const double all = totals[2], middle = all > 0 ? totals[0] / all : 0;
  const double squares = all > 0 ? totals[1] / all - middle * middle : 0;
  mean[channel] = static_cast<float>(middle);
  variance[channel] = squares < 0 ? 0.0f : static_cast<float>(squares);  // NaN stays NaN
  if (channel == 0) *count = static_cast<float>(all);
}

}  // namespace trainctl::cuda
