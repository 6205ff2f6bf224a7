// The passes of batch normalisation's gradient: first sums by channel, then dx. dy is read from memory, or gathered
// from the gradient of pooled images.
#pragma once

#include <string>
#include <vector>

#include "core/backend/cuda/ops/normalization/normalisation.h"

namespace trainctl::cuda {

constexpr DType dtype_of(float) { return DType::float32; }
constexpr DType dtype_of(__nv_bfloat16) { return DType::bfloat16; }
constexpr DType dtype_of(__half) { return DType::float16; }

// The tensors of a backward pass; a pointer is null if the op does not have the tensor.
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
  float* sums;  // [2][channels]; null if `means` are computed from the sums of this rank alone
  // The padding mask and the number of rows that it shows; null without a mask.
  const std::uint8_t* shown;
  const float* count;
};

// The addresses of the gradient's first pass, for BatchNormGrad and SynchronizedBatchNormSums. The inputs are dy, x,
// bits or y if one of them is the source of the mask, gamma, beta, mean and variance, and of a masked BatchNormGrad the
// padding mask and the number of rows that it shows; the outputs are dx or the sums, dgamma, dbeta and dresidual. The
// caller sets dx or sums of `b`.
template <class T, ReluMask mask>
struct GradientBuffers {
  Backward<T> b{};
  Normalisation n{};

  GradientBuffers(const BatchNormAttributes& a, bool accumulate, const Buffers& p) {
    std::size_t in = 2, out = 1;
    n.epsilon = a.epsilon;
    n.relu = a.relu;
    b.accumulate = accumulate;
    b.dy = p.in<T>(0);
    b.x = p.in<T>(1);
    if (mask == ReluMask::bits) b.bits = p.in<std::uint8_t>(in++);
    if (mask == ReluMask::y) b.y = p.in<T>(in++);
    if (a.scale) n.gamma = p.in<float>(in++);
    if (mask == ReluMask::x && a.center) n.beta = p.in<float>(in++);
    n.mean = p.in<float>(in++);
    n.variance = p.in<float>(in++);
    if (a.masked) {
      b.shown = p.in<std::uint8_t>(in++);
      b.count = p.in<float>(in);
    }
    if (a.scale) b.dgamma = p.out<float>(out++);
    if (a.center) b.dbeta = p.out<float>(out++);
    if (a.residual) b.dresidual = p.out<T>(out);
  }
};

// The source that reads dy from memory.
struct InPlaceGradient {
  template <int width, class T>
  __device__ Pack<T, width> at(const T* dy, std::int64_t offset) const {
    return pack_at<width>(dy + offset);
  }
};

// The values of a row that a thread of the backward pass reads; dy comes from a source.
template <class T, int width, ReluMask mask>
struct Row {
  Pack<T, width> dy, x, y;  // y only if it is the source of the mask
  unsigned bits;            // only if bits are the source of the mask

  template <class Source>
  __device__ Row(const Source& source, const T* dys, const T* xs, const T* ys, const std::uint8_t* mask_bits,
                 std::int64_t offset)
      : dy(source.template at<width>(dys, offset)), x(pack_at<width>(xs + offset)) {
    if constexpr (mask == ReluMask::y) y = pack_at<width>(ys + offset);
    if constexpr (mask == ReluMask::bits) bits = mask_bits[offset / bits_of_byte];
  }
  Row() = default;

  // dy f' of channel k.
  __device__ float gradient(const Factors<width>& factors, int k) const {
    bool passes = true;
    if constexpr (mask == ReluMask::x)
      passes = factors.normalised(load(x.values[k]), k) > least_unmasked(dtype_of(T{}));
    if constexpr (mask == ReluMask::y) passes = load(y.values[k]) > 0;
    if constexpr (mask == ReluMask::bits) passes = (bits >> k & 1u) != 0;
    return passes ? load(dy.values[k]) : 0.0f;
  }
};

// Sums dy f' and dy f' (x - mean) by channel. From these sums it computes dbeta, dgamma and `means`, the (dy_mean,
// slope) of each channel for dx; if Backward::sums is not null, writes the sums instead of `means`. Writes dy f' to
// dresidual if there is one.
template <class T, int width, ReluMask mask, class Source>
__global__ void __launch_bounds__(channel_threads, 2)
    gradient_sums(ChannelGrid grid, Normalisation n, Backward<T> b, Source source, Partials partials,
                  unsigned* counters, float2* means) {
  const ChannelThread at(grid);
  const T* __restrict__ dy = b.dy, * __restrict__ x = b.x, * __restrict__ y = b.y;
  const std::uint8_t* __restrict__ bits = b.bits;
  T* __restrict__ dresidual = b.dresidual;
  float values[2][width] = {};
  if (at.inside) {
    const Factors<width> factors(n, at.channel);
    const auto read = [&](std::int64_t offset) { return Row<T, width, mask>(source, dy, x, y, bits, offset); };
    each_offset<in_flight(width)>(grid, at, read, [&](std::int64_t offset, const Row<T, width, mask>& row) {
      Pack<T, width> unmasked;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float gradient = row.gradient(factors, k);
        unmasked.values[k] = store<T>(gradient);
        values[0][k] += gradient;
        values[1][k] += gradient * (load(row.x.values[k]) - factors.mean[k]);
      }
      if (dresidual != nullptr) pack_at<width>(dresidual + offset) = unmasked;
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
  const double rows = b.count != nullptr ? *b.count : static_cast<double>(grid.rows);
  if (b.sums == nullptr && rows > 0) {
    means[channel] = {static_cast<float>(totals[0] / rows), static_cast<float>(totals[1] / rows * inverse * inverse)};
  } else if (b.sums == nullptr) {
    means[channel] = {0.0f, 0.0f};
  } else {
    b.sums[channel] = static_cast<float>(totals[0]);
    b.sums[grid.channels + channel] = static_cast<float>(totals[1]);
  }
  const auto add = [&](float* sum, double value) {
    if (sum != nullptr) sum[channel] = static_cast<float>((b.accumulate ? sum[channel] : 0.0) + value);
  };
  add(b.dgamma, totals[1] * inverse);
  add(b.dbeta, totals[0]);
}

// dx = (dy f' - dy_mean - (x - mean) * slope) * scale; `means` holds dy_mean and slope. At the rows that a padding mask
// hides, dx = dy f' * scale.
template <class T, int width, ReluMask mask, class Source, bool masked = false>
__global__ void __launch_bounds__(channel_threads, 2)
    gradient_by_input(ChannelGrid grid, Normalisation n, Backward<T> b, Source source, const float2* means) {
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
    return Row<T, width, mask>(source, dy, x, nullptr, nullptr, mirror - mirrored);
  };
  each_offset<in_flight(width)>(grid, at, read, [&](std::int64_t mirrored, const Row<T, width, mask>& row) {
    Pack<T, width> dxs;
    bool shown = true;
    if constexpr (masked) shown = b.shown[(mirror - mirrored) / grid.channels] != 0;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float gradient = row.gradient(factors, k), distance = load(row.x.values[k]) - factors.mean[k];
      const float through = gradient - dy_mean[k] - distance * slope[k];
      dxs.values[k] = store<T>((shown ? through : gradient) * factors.scale[k]);
    }
    pack_at<width>(dx + (mirror - mirrored)) = dxs;
  });
}

// The possible numbers of channels per thread; each number is a candidate for a gradient. The most promising number
// comes first. In float32 the factors of 8 channels would not fit into a thread's registers.
inline std::vector<int> gradient_widths(const TensorType& x) {
  const std::int64_t channels = x.shape.back();
  if (channels % 8 == 0 && x.dtype != DType::float32) return {4, 8};
  return {channels % 4 == 0 ? 4 : 1};
}
// With a padding mask, the most promising number of channels is used, which is at most this.
inline constexpr int widest_masked = 4;
inline std::string name_of_width(int width) { return std::to_string(width) + " channels a thread"; }

// Calls make(T{}, std::integral_constant<int, width>{}) with one of these widths.
template <class Make>
auto with_gradient_width(DType dtype, int width, const Make& make) {
  return with_type(dtype, [&](auto type) {
    if constexpr (sizeof(type) == 2) {
      if (width == 8) return make(type, std::integral_constant<int, 8>{});
    }
    return width == 4 ? make(type, std::integral_constant<int, 4>{}) : make(type, std::integral_constant<int, 1>{});
  });
}

}  // namespace trainctl::cuda
