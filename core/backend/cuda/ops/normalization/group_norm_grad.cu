// The gradients of group normalisation. A kernel computes sums over stripes; from these, further kernels compute the
// sums of the groups, the gradients of gamma and beta, and dx.
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/normalization/grouped_samples.h"
#include "core/graph/ops/normalization/group_norm.h"

namespace trainctl::cuda {
namespace {

// The values of dy and x at one offset.
template <class T, int width>
struct GroupRow {
  Pack<T, width> dy, x;
};

// Sums dy and dy (x - mean) over each column of a stripe.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    stripe_gradients(ChannelGrid grid, GroupedSamples samples, NormBackward<T> b, Partials partials) {
  const ChannelThread at(grid);
  const std::int64_t channel = own_channel(grid);
  for (std::int64_t sample = blockIdx.z; sample < samples.count; sample += gridDim.z) {
    const std::int64_t first = sample * grid.rows * grid.channels;
    float values[2][width] = {}, sums[2];
    if (at.inside) {
      float average[width];
#pragma unroll
      for (int k = 0; k < width; ++k) average[k] = b.mean[samples.group_of(sample, at.channel + k)];
      const auto read = [&](std::int64_t offset) {
        return GroupRow<T, width>{pack_at<width>(b.dy + first + offset), pack_at<width>(b.x + first + offset)};
      };
      each_offset<2>(grid, at, read, [&](std::int64_t, const GroupRow<T, width>& row) {
#pragma unroll
        for (int k = 0; k < width; ++k) {
          const float gradient = load(row.dy.values[k]);
          values[0][k] += gradient;
          values[1][k] += gradient * (load(row.x.values[k]) - average[k]);
        }
      });
    }
    sum_lanes(values, grid.tile, sums);
    if (channel >= 0) partials[(sample * grid.stripes + blockIdx.y) * grid.channels + channel] = {sums[0], sums[1]};
  }
}

// Computes the coefficients a and b of each group, of dx = scale * dy - a - b * (x - mean), where
// scale = gamma * rstd.
template <class T>
__global__ void group_slopes(ChannelGrid grid, GroupedSamples samples, NormBackward<T> b, const float2* partials,
                             float2* slopes) {
  const double count = static_cast<double>(grid.rows) * samples.width;
  for (std::int64_t group = GroupWarp::first(); group < samples.count * samples.groups; group += GroupWarp::step()) {
    double straight = 0, along = 0;
    GroupWarp::each(grid, samples, group, partials, [&](std::int64_t, std::int64_t channel, const float2& partial) {
      const double weight = b.gamma != nullptr ? b.gamma[channel] : 1.0;
      straight += weight * partial.x;
      along += weight * partial.y;
    });
    straight = GroupWarp::sum(straight);
    along = GroupWarp::sum(along);
    const double inverse = b.rstd[group], part = inverse / count;
    if (threadIdx.x % 32 != 0) continue;
    slopes[group] = {static_cast<float>(part * straight), static_cast<float>(part * inverse * inverse * along)};
  }
}

template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    group_gradient_by_input(ChannelGrid grid, GroupedSamples samples, NormBackward<T> b, const float2* slopes) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  for (std::int64_t sample = blockIdx.z; sample < samples.count; sample += gridDim.z) {
    const std::int64_t first = sample * grid.rows * grid.channels;
    float average[width], scale[width];
    float2 slope[width];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const std::int64_t group = samples.group_of(sample, at.channel + k);
      average[k] = b.mean[group];
      scale[k] = b.rstd[group] * (b.gamma != nullptr ? b.gamma[at.channel + k] : 1.0f);
      slope[k] = slopes[group];
    }
    const auto read = [&](std::int64_t offset) {
      return GroupRow<T, width>{pack_at<width>(b.dy + first + offset), pack_at<width>(b.x + first + offset)};
    };
    each_offset<2>(grid, at, read, [&](std::int64_t offset, const GroupRow<T, width>& row) {
      Pack<T, width> dxs;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float distance = load(row.x.values[k]) - average[k];
        dxs.values[k] = store<T>(load(row.dy.values[k]) * scale[k] - slope[k].x - distance * slope[k].y);
      }
      pack_at<width>(b.dx + first + offset) = dxs;
    });
  }
}

// Computes dgamma and dbeta as the sums of all samples' stripes, in order. The rows of `grid` are these stripes; the
// grid itself has one stripe.
template <class T>
__global__ void __launch_bounds__(channel_threads)
    gradient_by_parameters(ChannelGrid grid, std::int64_t stripes, GroupedSamples samples, NormBackward<T> b,
                           bool accumulate, const float2* partials) {
  const ChannelThread at(grid);
  double values[2][1] = {}, sums[2];
  if (at.inside) {
    for (std::int64_t row = at.first; row < grid.rows; row += at.step) {
      const float2 partial = partials[row * grid.channels + at.channel];
      values[0][0] += partial.x;
      values[1][0] += static_cast<double>(partial.y) * b.rstd[samples.group_of(row / stripes, at.channel)];
    }
  }
  sum_lanes(values, grid.tile, sums);
  const std::int64_t channel = own_channel(grid);
  if (channel < 0) return;
  const auto add = [&](float* sum, double value) {
    if (sum != nullptr) sum[channel] = static_cast<float>((accumulate ? sum[channel] : 0.0) + value);
  };
  add(b.dgamma, sums[1]);
  add(b.dbeta, sums[0]);
}

}  // namespace

Lowering lower_group_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<GroupNormGrad>();
  const TensorType& x = context.input(1);
  return with_packs(x.dtype, x.shape.back(), [&, a = def.a, accumulate = def.accumulate](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const GroupedSamples samples(x.shape, a.groups);
    const GroupedGrids<T, width> grids(x.shape);
    const ChannelGrid all(samples.count * grids.sums.stripes, samples.channels, 1, sizeof(float2), 1, 1);
    return own_kernel(
        context,
        [=](const Buffers& p) {
          const NormBackward<T> b(p, a);
          auto* partials = p.workspace<float2>();
          float2* slopes = partials + grids.partials(samples);
          launch(stripe_gradients<T, width>, samples.blocks(grids.sums), channel_threads, p.stream, grids.sums, samples,
                 b, partials);
          launch(group_slopes<T>, blocks_for(samples.count * samples.groups * 32), block_threads, p.stream, grids.sums,
                 samples, b, partials, slopes);
          launch(group_gradient_by_input<T, elements_width<width>>, samples.blocks(grids.elements), channel_threads,
                 p.stream, grids.elements, samples, b, slopes);
          if (b.dgamma == nullptr && b.dbeta == nullptr) return;
          launch(gradient_by_parameters<T>, all.blocks(), channel_threads, p.stream, all, grids.sums.stripes, samples,
                 b, accumulate, partials);
        },
        (grids.partials(samples) + samples.count * samples.groups) * static_cast<std::int64_t>(sizeof(float2)));
  });
}

}  // namespace trainctl::cuda
