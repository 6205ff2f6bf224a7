// Batch normalisation with residual and ReLU fused, training and inference.
//
// Statistics are taken by stripes of rows about the stripe's first row (shifted sums), and the stripes' means and
// squares are joined in float64, so that a large mean costs no digits of the variance. The passes that follow the sums
// go through the rows backwards: what the sums read last may still be in the cache.
#include "core/graph/ops/batch_norm.h"

#include "core/backend/cuda/channels.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/last_block.h"
#include "core/backend/cuda/own_memory.h"

namespace trainctl::cuda {
namespace {

// A stripe's mean and squares about it, or two sums; by stripe, then channel.
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
#pragma unroll 4
    for (std::int64_t row = at.first; row < grid.rows; row += at.step) {
      const Pack<T, width> pack = pack_at<width>(x + row * grid.channels + at.channel);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float shifted = load(pack.values[k]) - load(shift.values[k]);
        values[0][k] += shifted;
        values[1][k] += shifted * shifted;
      }
    }
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

  // Means about the first stripe's, and squares about that too.
  double joined[2][1] = {}, totals[2];
  double first_mean = 0;
  if (const std::int64_t own = joined_channel(grid); own >= 0) {
    first_mean = fresh(partials + own).x;
#pragma unroll 4
    for (std::int64_t s = joined_first(grid); s < grid.stripes; s += joined_step(grid)) {
      const float2 partial = fresh(partials + s * grid.channels + own);
      const double shifted = partial.x - first_mean, rows = static_cast<double>(grid.rows_of(s));
      joined[0][0] += rows * shifted;
      joined[1][0] += partial.y + rows * shifted * shifted;
    }
  }
  sum_lanes(joined, grid.span(), totals);
  if (channel < 0) return;
  const double shifted = totals[0] / static_cast<double>(grid.rows);
  const double squares = totals[1] / static_cast<double>(grid.rows) - shifted * shifted;
  mean[channel] = static_cast<float>(first_mean + shifted);
  variance[channel] = squares < 0 ? 0.0f : static_cast<float>(squares);  // NaN stays
}

// What a normalisation is made of; gamma and beta may be null.
struct Normalisation {
  const float *mean, *variance, *gamma, *beta;
  float epsilon;
  bool relu;

  __device__ float scale(std::int64_t channel) const {
    const float inverse = rsqrtf(variance[channel] + epsilon);
    return gamma != nullptr ? gamma[channel] * inverse : inverse;
  }
};

constexpr int rows_in_flight = 2;  // of a thread

// y = f((x - mean) * scale + beta [+ residual]); y may be x.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    normalise(ChannelGrid grid, Normalisation n, const T* x, const T* residual, T* y) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  float mean[width], scale[width], beta[width];
#pragma unroll
  for (int k = 0; k < width; ++k) {
    mean[k] = n.mean[at.channel + k];
    scale[k] = n.scale(at.channel + k);
    beta[k] = n.beta != nullptr ? n.beta[at.channel + k] : 0.0f;
  }
  for (std::int64_t first = grid.rows - 1 - at.first; first >= 0; first -= rows_in_flight * at.step) {
    Pack<T, width> xs[rows_in_flight] = {}, residuals[rows_in_flight] = {};
#pragma unroll
    for (int i = 0; i < rows_in_flight; ++i) {
      const std::int64_t row = first - i * at.step;
      if (row < 0) continue;
      xs[i] = pack_at<width>(x + row * grid.channels + at.channel);
      if (residual != nullptr) residuals[i] = pack_at<width>(residual + row * grid.channels + at.channel);
    }
#pragma unroll
    for (int i = 0; i < rows_in_flight; ++i) {
      const std::int64_t row = first - i * at.step;
      if (row < 0) continue;
      Pack<T, width> ys;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        float value = (load(xs[i].values[k]) - mean[k]) * scale[k] + beta[k];
        if (residual != nullptr) value += load(residuals[i].values[k]);
        ys.values[k] = store<T>(n.relu && value < 0 ? 0.0f : value);
      }
      pack_at<width>(y + row * grid.channels + at.channel) = ys;
    }
  }
}

// The tensors of a backward pass; null where the op has none.
template <class T>
struct Backward {
  const T* dy;
  const T* x;
  const T* y;  // where relu
  T* dx;
  T* dresidual;
  float *dgamma, *dbeta;
  bool accumulate;
};

// Sums of dy f' and of dy f' (x - mean) by channel, which become dbeta, dgamma and `means`: what dx needs of them.
// Writes dy f' to dresidual where there is one.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    gradient_sums(ChannelGrid grid, Normalisation n, Backward<T> b, Partials partials, unsigned* counters,
                  float2* means) {
  const ChannelThread at(grid);
  const T* __restrict__ dy = b.dy, * __restrict__ x = b.x, * __restrict__ y = b.y;
  T* __restrict__ dresidual = b.dresidual;
  float values[2][width] = {};
  if (at.inside) {
    float mean[width];
#pragma unroll
    for (int k = 0; k < width; ++k) mean[k] = n.mean[at.channel + k];
#pragma unroll 2
    for (std::int64_t row = at.first; row < grid.rows; row += at.step) {
      const std::int64_t place = row * grid.channels + at.channel;
      Pack<T, width> dys = pack_at<width>(dy + place);
      const Pack<T, width> xs = pack_at<width>(x + place);
      if (y != nullptr) {
        const Pack<T, width> ys = pack_at<width>(y + place);
#pragma unroll
        for (int k = 0; k < width; ++k) {
          if (!(load(ys.values[k]) > 0)) dys.values[k] = store<T>(0.0f);
        }
      }
      if (dresidual != nullptr) pack_at<width>(dresidual + place) = dys;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float gradient = load(dys.values[k]);
        values[0][k] += gradient;
        values[1][k] += gradient * (load(xs.values[k]) - mean[k]);
      }
    }
  }
  float sums[2];
  sum_lanes(values, grid.tile, sums);
  const std::int64_t channel = own_channel(grid);
  if (channel >= 0) partials[blockIdx.y * grid.channels + channel] = {sums[0], sums[1]};
  if (!last_block(counters + blockIdx.x, gridDim.y)) return;

  double joined[2][1] = {}, totals[2];
  if (const std::int64_t own = joined_channel(grid); own >= 0) {
#pragma unroll 4
    for (std::int64_t s = joined_first(grid); s < grid.stripes; s += joined_step(grid)) {
      const float2 partial = fresh(partials + s * grid.channels + own);
      joined[0][0] += partial.x;
      joined[1][0] += partial.y;
    }
  }
  sum_lanes(joined, grid.span(), totals);
  if (channel < 0) return;
  const double inverse = 1.0 / sqrt(static_cast<double>(n.variance[channel]) + n.epsilon);
  const auto rows = static_cast<double>(grid.rows);
  means[channel] = {static_cast<float>(totals[0] / rows), static_cast<float>(totals[1] / rows * inverse * inverse)};
  const auto add = [&](float* sum, double value) {
    if (sum != nullptr) sum[channel] = static_cast<float>((b.accumulate ? sum[channel] : 0.0) + value);
  };
  add(b.dgamma, totals[1] * inverse);
  add(b.dbeta, totals[0]);
}

// dx = (dy f' - dy_mean - (x - mean) * slope) * scale; `means` holds dy_mean and slope.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    gradient_by_input(ChannelGrid grid, Normalisation n, Backward<T> b, const float2* means) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  const T* __restrict__ dy = b.dy, * __restrict__ x = b.x, * __restrict__ y = b.y;
  T* __restrict__ dx = b.dx;
  float mean[width], scale[width], dy_mean[width], slope[width];
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const std::int64_t channel = at.channel + k;
    mean[k] = n.mean[channel];
    scale[k] = n.scale(channel);
    dy_mean[k] = means[channel].x;
    slope[k] = means[channel].y;
  }
#pragma unroll 2
  for (std::int64_t row = grid.rows - 1 - at.first; row >= 0; row -= at.step) {
    const std::int64_t place = row * grid.channels + at.channel;
    const Pack<T, width> dys = pack_at<width>(dy + place), xs = pack_at<width>(x + place);
    const Pack<T, width> ys = y != nullptr ? pack_at<width>(y + place) : dys;
    Pack<T, width> dxs;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const bool passes = y == nullptr || load(ys.values[k]) > 0;
      const float gradient = passes ? load(dys.values[k]) : 0.0f;
      dxs.values[k] = store<T>((gradient - dy_mean[k] - (load(xs.values[k]) - mean[k]) * slope[k]) * scale[k]);
    }
    pack_at<width>(dx + place) = dxs;
  }
}

// The grids of an op: for its sums, whose blocks' results one block joins, and for what comes after them.
struct Grids {
  ChannelGrid sums, elements;

  template <class T, int width>
  static Grids of(const LowerContext& context) {
    const Shape& x = context.input(0).shape;
    const std::int64_t rows = x.count() / x.back(), processors = context.device.processors();
    return {ChannelGrid(rows, x.back(), width, sizeof(T), 4 * processors, 4),
            ChannelGrid(rows, x.back(), width, sizeof(T), 8 * processors, rows_in_flight)};
  }
  std::int64_t partials_bytes() const {
    return sums.stripes * sums.channels * static_cast<std::int64_t>(sizeof(float2));
  }
  std::int64_t means_bytes() const { return sums.channels * static_cast<std::int64_t>(sizeof(float2)); }
};

}  // namespace

Lowering lower_batch_norm(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNorm>().a;
  return with_packs(context.input(0).dtype, context.input(0).shape.back(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const Grids grids = Grids::of<T, width>(context);
    return own_kernel(
        context,
        [=, counters = make_counters(grids.sums.tiles)](const Places& p) {
          std::size_t next = 1;
          float *mean = p.out<float>(1), *variance = p.out<float>(2);
          Normalisation n{mean, variance, nullptr, nullptr, a.epsilon, a.relu};
          if (a.scale) n.gamma = p.in<float>(next++);
          if (a.center) n.beta = p.in<float>(next++);
          const T* residual = a.residual ? p.in<T>(next) : nullptr;
          launch(statistics<T, width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, p.in<T>(0),
                 p.workspace<float2>(), counters.get(), mean, variance);
          launch(normalise<T, width>, grids.elements.blocks(), channel_threads, p.stream, grids.elements, n, p.in<T>(0),
                 residual, p.out<T>(0));
        },
        grids.partials_bytes());
  });
}

Lowering lower_batch_norm_inference(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNormInference>().a;
  return with_packs(context.input(0).dtype, context.input(0).shape.back(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ChannelGrid grid = Grids::of<T, width>(context).elements;
    return own_kernel(context, [=](const Places& p) {
      std::size_t next = 1;
      Normalisation n{nullptr, nullptr, nullptr, nullptr, a.epsilon, a.relu};
      if (a.scale) n.gamma = p.in<float>(next++);
      if (a.center) n.beta = p.in<float>(next++);
      n.mean = p.in<float>(next++);
      n.variance = p.in<float>(next++);
      const T* residual = a.residual ? p.in<T>(next) : nullptr;
      launch(normalise<T, width>, grid.blocks(), channel_threads, p.stream, grid, n, p.in<T>(0), residual, p.out<T>(0));
    });
  });
}

Lowering lower_batch_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormGrad>();
  return with_packs(context.input(0).dtype, context.input(0).shape.back(),
                    [&, a = def.a, accumulate = def.accumulate](auto type, auto pack) {
                      using T = decltype(type);
                      constexpr int width = decltype(pack)::value;
                      const Grids grids = Grids::of<T, width>(context);
                      return own_kernel(
                          context,
                          [=, counters = make_counters(grids.sums.tiles)](const Places& p) {
                            std::size_t in = 2, out = 1;
                            Backward<T> b{p.in<T>(0), p.in<T>(1), nullptr, p.out<T>(0),
                                          nullptr,    nullptr,    nullptr, accumulate};
                            Normalisation n{nullptr, nullptr, nullptr, nullptr, a.epsilon, a.relu};
                            if (a.relu) b.y = p.in<T>(in++);
                            if (a.scale) n.gamma = p.in<float>(in++);
                            n.mean = p.in<float>(in++);
                            n.variance = p.in<float>(in);
                            if (a.scale) b.dgamma = p.out<float>(out++);
                            if (a.center) b.dbeta = p.out<float>(out++);
                            if (a.residual) b.dresidual = p.out<T>(out);
                            auto* means = p.workspace<float2>();
                            launch(gradient_sums<T, width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums,
                                   n, b, p.workspace<float2>(grids.means_bytes()), counters.get(), means);
                            if (a.residual) b.dy = b.dresidual, b.y = nullptr;  // it holds dy f' already
                            launch(gradient_by_input<T, width>, grids.elements.blocks(), channel_threads, p.stream,
                                   grids.elements, n, b, means);
                          },
                          grids.means_bytes() + grids.partials_bytes());
                    });
}

}  // namespace trainctl::cuda
