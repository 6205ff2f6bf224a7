// Group normalisation: the moments of stripes, in two passes over each stripe, then the statistics of the groups, and a
// pass over elements.
#include "core/graph/ops/normalization/group_norm.h"

#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/normalization/grouped_samples.h"

namespace trainctl::cuda {
namespace {

// Computes the mean of each column of a stripe, and its sum of squares about that mean.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    stripe_moments(ChannelGrid grid, GroupedSamples samples, const T* __restrict__ x, Partials partials) {
  __shared__ float middle[widest_tile * width];
  const ChannelThread at(grid);
  const float* own_middle = middle + static_cast<int>(threadIdx.x) % grid.tile * width;
  const std::int64_t channel = own_channel(grid), stripe = blockIdx.y;
  const auto rows = static_cast<float>(grid.rows_of(stripe));
  for (std::int64_t sample = blockIdx.z; sample < samples.count; sample += gridDim.z) {
    const T* xs = x + sample * grid.rows * grid.channels;
    const auto read = [&](std::int64_t offset) { return pack_at<width>(xs + offset); };
    float values[2][width] = {}, about[2][width] = {}, sums[2];
    if (at.inside) {
      each_offset<4>(grid, at, read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
        for (int k = 0; k < width; ++k) values[0][k] += load(pack.values[k]);
      });
    }
    // Sums two quantities, like the call below, so that both calls use the same shared memory.
    sum_lanes(values, grid.tile, sums);
    if (channel >= 0) middle[threadIdx.x] = sums[0] / rows;
    __syncthreads();
    if (at.inside) {
      each_offset<4>(grid, at, read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
        for (int k = 0; k < width; ++k) {
          const float distance = load(pack.values[k]) - own_middle[k];
          about[0][k] += distance;
          about[1][k] += distance * distance;
        }
      });
    }
    sum_lanes(about, grid.tile, sums);
    if (channel < 0) continue;
    partials[(sample * grid.stripes + stripe) * grid.channels + channel] = {middle[threadIdx.x] + sums[0] / rows,
                                                                            sums[1] - sums[0] * sums[0] / rows};
  }
}

__global__ void group_moments(ChannelGrid grid, GroupedSamples samples, const float2* partials, float epsilon,
                              float* mean, float* rstd) {
  const double count = static_cast<double>(grid.rows) * samples.width;
  for (std::int64_t group = GroupWarp::first(); group < samples.count * samples.groups; group += GroupWarp::step()) {
    double sum = 0, squares = 0;
    GroupWarp::each(grid, samples, group, partials, [&](std::int64_t stripe, std::int64_t, const float2& partial) {
      sum += static_cast<double>(grid.rows_of(stripe)) * partial.x;
    });
    const double average = GroupWarp::sum(sum) / count;
    GroupWarp::each(grid, samples, group, partials, [&](std::int64_t stripe, std::int64_t, const float2& partial) {
      const double distance = partial.x - average;
      squares += partial.y + static_cast<double>(grid.rows_of(stripe)) * distance * distance;
    });
    double variance = GroupWarp::sum(squares) / count;
    variance = variance < 0 ? 0.0 : variance;  // NaN stays NaN
    if (threadIdx.x % 32 != 0) continue;
    mean[group] = static_cast<float>(average);
    rstd[group] = static_cast<float>(1.0 / sqrt(variance + epsilon));
  }
}

// gamma and beta may be null; y may be x.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    normalise_groups(ChannelGrid grid, GroupedSamples samples, const T* x, const float* gamma, const float* beta,
                     const float* mean, const float* rstd, T* y) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  float shift[width] = {};
  if (beta != nullptr) read_channels(beta, at.channel, shift);
  for (std::int64_t sample = blockIdx.z; sample < samples.count; sample += gridDim.z) {
    const std::int64_t first = sample * grid.rows * grid.channels;
    float average[width], scale[width];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const std::int64_t group = samples.group_of(sample, at.channel + k);
      average[k] = mean[group];
      scale[k] = rstd[group] * (gamma != nullptr ? gamma[at.channel + k] : 1.0f);
    }
    const auto read = [&](std::int64_t offset) { return pack_at<width>(x + first + offset); };
    each_offset<2>(grid, at, read, [&](std::int64_t offset, const Pack<T, width>& pack) {
      Pack<T, width> ys;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        ys.values[k] = store<T>((load(pack.values[k]) - average[k]) * scale[k] + shift[k]);
      }
      pack_at<width>(y + first + offset) = ys;
    });
  }
}

}  // namespace

Lowering lower_group_norm(const LowerContext& context) {
  const TensorType& x = context.input(0);
  return with_packs(x.dtype, x.shape.back(), [&, a = context.op.as<GroupNorm>().a](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const GroupedSamples samples(x.shape, a.groups);
    const GroupedGrids<T, width> grids(x.shape);
    return own_kernel(
        context,
        [=](const Buffers& p) {
          const float* gamma = a.scale ? p.in<float>(1) : nullptr;
          const float* beta = a.center ? p.in<float>(a.scale ? 2 : 1) : nullptr;
          float *mean = p.out<float>(1), *rstd = p.out<float>(2);
          auto* partials = p.workspace<float2>();
          launch(stripe_moments<T, width>, samples.blocks(grids.sums), channel_threads, p.stream, grids.sums, samples,
                 p.in<T>(0), partials);
          launch(group_moments, blocks_for(samples.count * samples.groups * 32), block_threads, p.stream, grids.sums,
                 samples, partials, a.epsilon, mean, rstd);
          launch(normalise_groups<T, elements_width<width>>, samples.blocks(grids.elements), channel_threads, p.stream,
                 grids.elements, samples, p.in<T>(0), gamma, beta, mean, rstd, p.out<T>(0));
        },
        grids.partials(samples) * static_cast<std::int64_t>(sizeof(float2)));
  });
}

}  // namespace trainctl::cuda
