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
#include "core/backend/cuda/ways.h"

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
};

// The same of a thread's channels.
template <int width>
struct Factors {
  float mean[width], scale[width], beta[width] = {};

  __device__ Factors(const Normalisation& n, std::int64_t channel) {
    float variances[width], gammas[width];
    read_channels(n.mean, channel, mean);
    read_channels(n.variance, channel, variances);
    if (n.gamma != nullptr) read_channels(n.gamma, channel, gammas);
    if (n.beta != nullptr) read_channels(n.beta, channel, beta);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float inverse = rsqrtf(variances[k] + n.epsilon);
      scale[k] = n.gamma != nullptr ? gammas[k] * inverse : inverse;
    }
  }

  // Channel k's value before residual and ReLU. Each step is rounded, whatever the compiler would fuse elsewhere: the
  // backward pass computes the same bits as the forward pass, and the GPU those of the CPU.
  __device__ float normalised(float x, int k) const { return __fadd_rn(__fmul_rn(x - mean[k], scale[k]), beta[k]); }
};

// Rows of a thread that are read before the first is used; more would not fit in its registers.
constexpr int rows_in_flight = 2;
constexpr int in_flight(int width) { return width == 8 ? 1 : rows_in_flight; }

// Packs of kernels that keep several factors of each channel in registers: half of what an access could take, for half
// precision, so that these and the rows in flight fit.
template <int widest_pack>
inline constexpr int narrower = widest_pack == 1 ? 1 : 4;

constexpr int bits_of_byte = 8;  // the packs where a mask is written or read

// y = f((x - mean) * scale + beta [+ residual]); y may be x. Packs of 8 write the mask, y > 0, where it is not null.
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
    const std::int64_t place = mirror - mirrored;
    const Pack<T, width> xs = pack_at<width>(x + place);
    return Pair{xs, residual != nullptr ? pack_at<width>(residual + place) : xs};
  };
  each_place<in_flight(width)>(grid, at, read, [&](std::int64_t mirrored, const Pair& pair) {
    const std::int64_t place = mirror - mirrored;
    Pack<T, width> ys;
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      float value = factors.normalised(load(pair.x.values[k]), k);
      if (residual != nullptr) value += load(pair.residual.values[k]);
      ys.values[k] = store<T>(n.relu && value < 0 ? 0.0f : value);
      if constexpr (width == bits_of_byte) bits |= load(ys.values[k]) > 0 ? 1u << k : 0u;
    }
    pack_at<width>(y + place) = ys;
    if constexpr (width == bits_of_byte) {
      if (mask != nullptr) mask[place / bits_of_byte] = static_cast<std::uint8_t>(bits);
    }
  });
}

constexpr DType dtype_of(float) { return DType::float32; }
constexpr DType dtype_of(__nv_bfloat16) { return DType::bfloat16; }
constexpr DType dtype_of(__half) { return DType::float16; }

// Where ReLU's mask comes from on the way back.
enum class Mask { none, x, bits, y };

// The tensors of a backward pass; null where the op has none.
template <class T>
struct Backward {
  const T* dy;
  const T* x;
  const T* y;
  const std::uint8_t* bits;
  T* dx;
  T* dresidual;
  float *dgamma, *dbeta;
  bool accumulate;
};

// What a thread reads of a row on the way back.
template <class T, int width, Mask mask>
struct Row {
  Pack<T, width> dy, x, y;  // y where it is the mask
  unsigned bits;            // likewise

  __device__ Row(const T* dys, const T* xs, const T* ys, const std::uint8_t* mask_bits, std::int64_t place)
      : dy(pack_at<width>(dys + place)), x(pack_at<width>(xs + place)) {
    if constexpr (mask == Mask::y) y = pack_at<width>(ys + place);
    if constexpr (mask == Mask::bits) bits = mask_bits[place / bits_of_byte];
  }
  Row() = default;

  // dy f' of channel k.
  __device__ float gradient(const Factors<width>& factors, int k) const {
    bool passes = true;
    if constexpr (mask == Mask::x) passes = factors.normalised(load(x.values[k]), k) > least_unmasked(dtype_of(T{}));
    if constexpr (mask == Mask::y) passes = load(y.values[k]) > 0;
    if constexpr (mask == Mask::bits) passes = (bits >> k & 1u) != 0;
    return passes ? load(dy.values[k]) : 0.0f;
  }
};

// Sums of dy f' and of dy f' (x - mean) by channel, which become dbeta, dgamma and `means`: what dx needs of them.
// Writes dy f' to dresidual where there is one.
template <class T, int width, Mask mask>
__global__ void __launch_bounds__(channel_threads, 2)
    gradient_sums(ChannelGrid grid, Normalisation n, Backward<T> b, Partials partials, unsigned* counters,
                  float2* means) {
  const ChannelThread at(grid);
  const T* __restrict__ dy = b.dy, * __restrict__ x = b.x, * __restrict__ y = b.y;
  const std::uint8_t* __restrict__ bits = b.bits;
  T* __restrict__ dresidual = b.dresidual;
  float values[2][width] = {};
  if (at.inside) {
    const Factors<width> factors(n, at.channel);
    const auto read = [&](std::int64_t place) { return Row<T, width, mask>(dy, x, y, bits, place); };
    each_place<in_flight(width)>(grid, at, read, [&](std::int64_t place, const Row<T, width, mask>& row) {
      Pack<T, width> unmasked;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float gradient = row.gradient(factors, k);
        unmasked.values[k] = store<T>(gradient);
        values[0][k] += gradient;
        values[1][k] += gradient * (load(row.x.values[k]) - factors.mean[k]);
      }
      if (dresidual != nullptr) pack_at<width>(dresidual + place) = unmasked;
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
template <class T, int width, Mask mask>
__global__ void __launch_bounds__(channel_threads, 2)
    gradient_by_input(ChannelGrid grid, Normalisation n, Backward<T> b, const float2* means) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  const T* __restrict__ dy = b.dy, * __restrict__ x = b.x;
  T* __restrict__ dx = b.dx;
  const Factors<width> factors(n, at.channel);
  float dy_mean[width], slope[width];
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float2 of_dy = means[at.channel + k];
    dy_mean[k] = of_dy.x;
    slope[k] = of_dy.y;
  }
  const std::int64_t mirror = (grid.rows - 1) * grid.channels + 2 * at.channel;
  const auto read = [&](std::int64_t mirrored) {
    return Row<T, width, mask>(dy, x, nullptr, nullptr, mirror - mirrored);
  };
  each_place<in_flight(width)>(grid, at, read, [&](std::int64_t mirrored, const Row<T, width, mask>& row) {
    Pack<T, width> dxs;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float gradient = row.gradient(factors, k), distance = load(row.x.values[k]) - factors.mean[k];
      dxs.values[k] = store<T>((gradient - dy_mean[k] - distance * slope[k]) * factors.scale[k]);
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
  const std::int64_t channels = context.input(0).shape.back();
  return with_packs(context.input(0).dtype, channels, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const auto lower = [&](auto element_pack) {
      constexpr int element_width = decltype(element_pack)::value;
      const Grids grids = Grids::of<T>(context, width, element_width);
      return own_kernel(
          context,
          [=, masks = a.masks_by_bits(channels), counters = make_counters(grids.sums.tiles)](const Places& p) {
            std::size_t next = 1;
            float *mean = p.out<float>(1), *variance = p.out<float>(2);
            Normalisation n{mean, variance, nullptr, nullptr, a.epsilon, a.relu};
            if (a.scale) n.gamma = p.in<float>(next++);
            if (a.center) n.beta = p.in<float>(next++);
            const T* residual = a.residual ? p.in<T>(next) : nullptr;
            launch(statistics<T, width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, p.in<T>(0),
                   p.workspace<float2>(), counters.get(), mean, variance);
            launch(normalise<T, element_width>, grids.elements.blocks(), channel_threads, p.stream, grids.elements, n,
                   p.in<T>(0), residual, p.out<T>(0), masks ? p.out<std::uint8_t>(3) : nullptr);
          },
          grids.partials_bytes());
    };
    if constexpr (width > 1) {
      if (a.masks_by_bits(channels)) return lower(std::integral_constant<int, bits_of_byte>{});
    }
    return lower(std::integral_constant<int, narrower<width>>{});
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
      launch(normalise<T, width>, grid.blocks(), channel_threads, p.stream, grid, n, p.in<T>(0), residual, p.out<T>(0),
             nullptr);
    });
  });
}

namespace {

std::string name_of_width(int width) { return std::to_string(width) + " channels a thread"; }

// The gradient by kernels whose threads take so many channels, with the mask of one source.
template <class T, int width, Mask mask>
Way gradient_way(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormGrad>();
  constexpr Mask mask_of_dx = mask == Mask::x ? Mask::x : Mask::none;  // dresidual holds dy f' already
  constexpr int sums_width = mask == Mask::bits ? bits_of_byte : width;
  const Grids grids = Grids::of<T>(context, sums_width, width);
  Way way;
  way.implementation = "own, " + name_of_width(width);
  way.inputs = context.logical().inputs;
  way.workspace_bytes = grids.means_bytes() + grids.partials_bytes();
  way.run = [=, a = def.a, accumulate = def.accumulate, counters = make_counters(grids.sums.tiles)](const Places& p) {
    std::size_t in = 2, out = 1;
    Backward<T> b{};
    b.dy = p.in<T>(0), b.x = p.in<T>(1), b.dx = p.out<T>(0), b.accumulate = accumulate;
    Normalisation n{nullptr, nullptr, nullptr, nullptr, a.epsilon, a.relu};
    if (mask == Mask::bits) b.bits = p.in<std::uint8_t>(in++);
    if (mask == Mask::y) b.y = p.in<T>(in++);
    if (a.scale) n.gamma = p.in<float>(in++);
    if (mask == Mask::x && a.center) n.beta = p.in<float>(in++);
    n.mean = p.in<float>(in++);
    n.variance = p.in<float>(in);
    if (a.scale) b.dgamma = p.out<float>(out++);
    if (a.center) b.dbeta = p.out<float>(out++);
    if (a.residual) b.dresidual = p.out<T>(out);
    auto* means = p.workspace<float2>();
    launch(gradient_sums<T, sums_width, mask>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, n, b,
           p.workspace<float2>(grids.means_bytes()), counters.get(), means);
    if (a.residual) b.dy = b.dresidual;
    launch(gradient_by_input<T, width, mask_of_dx>, grids.elements.blocks(), channel_threads, p.stream, grids.elements,
           n, b, means);
  };
  return way;
}

// Channels of a thread, by which ways are recorded; the most promising first. In float32 factors of 8 would not fit in
// its registers.
std::vector<int> widths_for(const TensorType& x) {
  const std::int64_t channels = x.shape.back();
  if (channels % 8 == 0 && x.dtype != DType::float32) return {4, 8};
  return {channels % 4 == 0 ? 4 : 1};
}

constexpr std::int64_t least_timed = 1 << 20;  // elements, below which a choice is not worth its timing

template <class T, int width>
Way gradient_way(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNormGrad>().a;
  const std::int64_t channels = context.input(1).shape.back();
  if (a.masks_by_x()) return gradient_way<T, width, Mask::x>(context);
  if constexpr (width > 1) {
    if (a.masks_by_bits(channels)) return gradient_way<T, width, Mask::bits>(context);
  }
  if constexpr (width < 8) {
    if (a.masks_by_y(channels)) return gradient_way<T, width, Mask::y>(context);
  }
  return gradient_way<T, width, Mask::none>(context);
}

}  // namespace

Lowering lower_batch_norm_grad(const LowerContext& context) {
  const std::vector<int> widths = widths_for(context.input(1));
  const auto names = [&] {
    std::vector<std::string> names;
    for (int width : widths) names.push_back(name_of_width(width));
    if (context.input(1).shape.count() < least_timed) names.resize(1);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Way> {
    for (int width : widths) {
      if (name != name_of_width(width)) continue;
      return with_type(context.input(1).dtype, [&](auto type) {
        using T = decltype(type);
        if constexpr (sizeof(T) == 2) {
          if (width == 8) return gradient_way<T, 8>(context);
        }
        return width == 4 ? gradient_way<T, 4>(context) : gradient_way<T, 1>(context);
      });
    }
    return {};
  };
  return lower_fastest(context, {names, make});
}

}  // namespace trainctl::cuda
