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
    const auto read = [&](std::int64_t place) { return pack_at<width>(x + place); };
    each_place<4>(grid, at, read, [&](std::int64_t, const Pack<T, width>& pack) {
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

  // Means about the first stripe's, and squares about that too.
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
  variance[channel] = squares < 0 ? 0.0f : static_cast<float>(squares);  // NaN stays
}

// What a normalisation is made of; gamma and beta may be null.
struct Normalisation {
  const float *mean, *variance, *gamma, *beta;
  float epsilon;
  bool relu;

  // Of `width` channels.
  template <int width>
  __device__ void read_scales(std::int64_t channel, float (&scales)[width]) const {
    float variances[width], gammas[width];
    read_channels(variance, channel, variances);
    if (gamma != nullptr) read_channels(gamma, channel, gammas);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float inverse = rsqrtf(variances[k] + epsilon);
      scales[k] = gamma != nullptr ? gammas[k] * inverse : inverse;
    }
  }
};

constexpr int rows_in_flight = 2;  // of a thread; more would not fit in its registers

// Packs of kernels that keep several factors of each channel in registers: half of what an access could take, for half
// precision, so that these and the rows in flight fit.
template <int widest_pack>
inline constexpr int narrower = widest_pack == 1 ? 1 : 4;

// y = f((x - mean) * scale + beta [+ residual]); y may be x.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    normalise(ChannelGrid grid, Normalisation n, const T* x, const T* residual, T* y) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  float mean[width], scale[width], beta[width] = {};
  read_channels(n.mean, at.channel, mean);
  n.read_scales(at.channel, scale);
  if (n.beta != nullptr) read_channels(n.beta, at.channel, beta);
  struct Pair {
    Pack<T, width> x, residual;
  };
  const std::int64_t mirror = (grid.rows - 1) * grid.channels + 2 * at.channel;  // from the last row to the first
  const auto read = [&](std::int64_t mirrored) {
    const std::int64_t place = mirror - mirrored;
    const Pack<T, width> xs = pack_at<width>(x + place);
    return Pair{xs, residual != nullptr ? pack_at<width>(residual + place) : xs};
  };
  each_place<rows_in_flight>(grid, at, read, [&](std::int64_t mirrored, const Pair& pair) {
    Pack<T, width> ys;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      float value = (load(pair.x.values[k]) - mean[k]) * scale[k] + beta[k];
      if (residual != nullptr) value += load(pair.residual.values[k]);
      ys.values[k] = store<T>(n.relu && value < 0 ? 0.0f : value);
    }
    pack_at<width>(y + (mirror - mirrored)) = ys;
  });
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

// What a thread reads of a row on the way back; y is anything without a relu.
template <class T, int width>
struct Row {
  Pack<T, width> dy, x, y;
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
    read_channels(n.mean, at.channel, mean);
    const auto read = [&](std::int64_t place) {
      const Pack<T, width> dys = pack_at<width>(dy + place);
      return Row<T, width>{dys, pack_at<width>(x + place), y != nullptr ? pack_at<width>(y + place) : dys};
    };
    each_place<rows_in_flight>(grid, at, read, [&](std::int64_t place, Row<T, width>& r) {
      if (y != nullptr) {
#pragma unroll
        for (int k = 0; k < width; ++k) {
          if (!(load(r.y.values[k]) > 0)) r.dy.values[k] = store<T>(0.0f);
        }
      }
      if (dresidual != nullptr) pack_at<width>(dresidual + place) = r.dy;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float gradient = load(r.dy.values[k]);
        values[0][k] += gradient;
        values[1][k] += gradient * (load(r.x.values[k]) - mean[k]);
      }
    });
  }
  float sums[2];
  sum_lanes(values, grid.tile, sums);
  const std::int64_t channel = own_channel(grid);
  if (channel >= 0) partials[blockIdx.y * grid.channels + channel] = {sums[0], sums[1]};
  if (!last_block(counters + blockIdx.x, gridDim.y)) return;

  double joined[2][1] = {}, totals[2];
  if (const std::int64_t own = joined_channel(grid); own >= 0) {
    const auto read = [&](std::int64_t s) { return fresh(partials + s * grid.channels + own); };
    each<8>(joined_first(grid), grid.stripes, joined_step(grid), read, [&](std::int64_t, const float2& partial) {
      joined[0][0] += partial.x;
      joined[1][0] += partial.y;
    });
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
  read_channels(n.mean, at.channel, mean);
  n.read_scales(at.channel, scale);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float2 of_dy = means[at.channel + k];
    dy_mean[k] = of_dy.x;
    slope[k] = of_dy.y;
  }
  const std::int64_t mirror = (grid.rows - 1) * grid.channels + 2 * at.channel;
  const auto read = [&](std::int64_t mirrored) {
    const std::int64_t place = mirror - mirrored;
    const Pack<T, width> dys = pack_at<width>(dy + place);
    return Row<T, width>{dys, pack_at<width>(x + place), y != nullptr ? pack_at<width>(y + place) : dys};
  };
  each_place<rows_in_flight>(grid, at, read, [&](std::int64_t mirrored, const Row<T, width>& r) {
    Pack<T, width> dxs;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const bool passes = y == nullptr || load(r.y.values[k]) > 0;
      const float gradient = passes ? load(r.dy.values[k]) : 0.0f;
      dxs.values[k] = store<T>((gradient - dy_mean[k] - (load(r.x.values[k]) - mean[k]) * slope[k]) * scale[k]);
    }
    pack_at<width>(dx + (mirror - mirrored)) = dxs;
  });
}

// The grids of an op: for its sums, whose blocks all run at once and whose results one block joins, and for what comes
// after them.
struct Grids {
  ChannelGrid sums, elements;

  // For packs of so many values of type T.
  template <class T>
  static Grids of(const LowerContext& context, int sums_width, int elements_width) {
    const Shape& x = context.input(0).shape;
    const std::int64_t rows = x.count() / x.back(), processors = context.device.processors();
    return {ChannelGrid(rows, x.back(), sums_width, sizeof(T), 2 * processors, rows_in_flight),
            ChannelGrid(rows, x.back(), elements_width, sizeof(T), 8 * processors, rows_in_flight)};
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
    constexpr int width = decltype(pack)::value, element_width = narrower<width>;
    const Grids grids = Grids::of<T>(context, width, element_width);
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
          launch(normalise<T, element_width>, grids.elements.blocks(), channel_threads, p.stream, grids.elements, n,
                 p.in<T>(0), residual, p.out<T>(0));
        },
        grids.partials_bytes());
  });
}

Lowering lower_batch_norm_inference(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNormInference>().a;
  return with_packs(context.input(0).dtype, context.input(0).shape.back(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = narrower<decltype(pack)::value>;
    const ChannelGrid grid = Grids::of<T>(context, width, width).elements;
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
                      constexpr int width = narrower<decltype(pack)::value>;
                      const Grids grids = Grids::of<T>(context, width, width);
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
