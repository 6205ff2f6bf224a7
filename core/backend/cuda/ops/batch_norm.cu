// Batch normalisation with residual and ReLU fused, training and inference.
#include "core/graph/ops/batch_norm.h"

#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/normalisation.h"

namespace trainctl::cuda {
namespace {

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

}  // namespace

Lowering lower_batch_norm(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNorm>().a;
  const std::int64_t channels = context.input(0).shape.back();
  return with_packs(context.input(0).dtype, channels, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const auto lower = [&](auto element_pack) {
      constexpr int element_width = decltype(element_pack)::value;
      const Grids grids = Grids::of<T>(context.input(0).shape, context.device, width, element_width);
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
    const ChannelGrid grid = Grids::of<T>(context.input(0).shape, context.device, width, width).elements;
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

}  // namespace trainctl::cuda
