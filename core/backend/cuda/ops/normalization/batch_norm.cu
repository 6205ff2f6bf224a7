// Batch normalisation with residual and ReLU fused, training and inference.
#include "core/graph/ops/normalization/batch_norm.h"

#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/normalization/masked_statistics.h"

namespace trainctl::cuda {
namespace {

// The op with a padding mask. ReLU's mask, if it is written, has packs of 8 channels.
template <class T, int width, int element_width>
Lowering lower_masked(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNorm>().a;
  const Grids grids = Grids::of<T>(context.input(0).shape, context.device, width, element_width);
  return own_kernel(
      context,
      [=, masks = a.masks_by_bits(grids.sums.channels), counters = make_counters(grids.sums.tiles)](const Buffers& p) {
        std::size_t next = 1;
        float *mean = p.out<float>(1), *variance = p.out<float>(2);
        Normalisation n{mean, variance, nullptr, nullptr, a.epsilon, a.relu};
        if (a.scale) n.gamma = p.in<float>(next++);
        if (a.center) n.beta = p.in<float>(next++);
        const auto* shown = p.in<std::uint8_t>(next++);
        const T* residual = a.residual ? p.in<T>(next) : nullptr;
        launch(shown_statistics<T, width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, p.in<T>(0),
               shown, ShownPartials(grids.sums, p.workspace<float2>()), counters.get(), mean, variance,
               p.out<float>(3));
        launch(normalise<T, element_width>, grids.elements.blocks(), channel_threads, p.stream, grids.elements, n,
               p.in<T>(0), residual, p.out<T>(0), masks ? p.out<std::uint8_t>(4) : nullptr);
      },
      ShownPartials::bytes(grids.sums));
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
      if (a.masked) return lower_masked<T, narrower<width>, element_width>(context);
      const Grids grids = Grids::of<T>(context.input(0).shape, context.device, width, element_width);
      return own_kernel(
          context,
          [=, masks = a.masks_by_bits(channels), counters = make_counters(grids.sums.tiles)](const Buffers& p) {
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
    return own_kernel(context, [=](const Buffers& p) {
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

Lowering lower_batch_norm_inference_grad(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormInferenceGrad>();
  return with_packs(context.input(0).dtype, context.input(0).shape.back(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = narrower<decltype(pack)::value>;
    const ChannelGrid grid = Grids::of<T>(context.input(0).shape, context.device, width, width).elements;
    return own_kernel(context, [grid, epsilon = def.epsilon, scale = def.scale](const Buffers& p) {
      Normalisation n{nullptr, p.in<float>(scale ? 2 : 1), nullptr, nullptr, epsilon, false};
      if (scale) n.gamma = p.in<float>(1);
      launch(normalise<T, width>, grid.blocks(), channel_threads, p.stream, grid, n, p.in<T>(0),
             static_cast<const T*>(nullptr), p.out<T>(0), static_cast<std::uint8_t*>(nullptr));
    });
  });
}

}  // namespace trainctl::cuda
