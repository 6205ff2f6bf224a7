// Converts stored samples into the network's input: scales and shifts them by channel.
#include "core/backend/cuda/cudnn/padded_images.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/normalization/normalize.h"

namespace trainctl::cuda {
namespace {

// Processes packs of `width` values; `factors` holds scale and offset of each channel.
template <class From, class To, int width>
__global__ void normalize(const From* __restrict__ x, const float2* __restrict__ factors, std::uint32_t channels,
                          std::uint32_t packs, To* __restrict__ y) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < packs; i += gridDim.x * blockDim.x) {
    const std::int64_t first = static_cast<std::int64_t>(i) * width;
    const Pack<From, width> values = pack_at<width>(x + first);
    Pack<To, width> results;
    std::uint32_t channel = i % channels * width % channels;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float2 factor = factors[channel];
      results.values[k] = store<To>(load(values.values[k]) * factor.x + factor.y);
      if (++channel == channels) channel = 0;
    }
    pack_at<width>(y + first) = results;
  }
}

// Writes pixels of `width` channels: the image's channels, then zeros.
template <class From, class To, int width>
__global__ void normalize_padded(const From* __restrict__ x, const float2* __restrict__ factors, int factor_count,
                                 int channels, std::uint32_t pixels, To* __restrict__ y) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x) {
    const From* pixel = x + static_cast<std::int64_t>(i) * channels;
    Pack<To, width> results;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      float value = 0;
      if (k < channels) {
        const float2 factor = factors[factor_count == 1 ? 0 : k];
        value = load(pixel[k]) * factor.x + factor.y;
      }
      results.values[k] = store<To>(value);
    }
    pack_at<width>(y + static_cast<std::int64_t>(i) * width) = results;
  }
}

template <class From, class To>
Lowering lower_padded(const LowerContext& context, const std::vector<float2>& factors) {
  const std::int64_t channels = context.input(0).shape.back();
  const std::uint32_t pixels = narrow(context.input(0).shape.count() / channels);
  Lowering lowering =
      own_kernel(context, [=, count = static_cast<int>(factors.size()), values = on_device(factors)](const Buffers& p) {
        launch(normalize_padded<From, To, padded_channels>, blocks_for(pixels), block_threads, p.stream, p.in<From>(0),
               values.get(), count, static_cast<int>(channels), pixels, p.out<To>(0));
      });
  lowering.implementation += ", padded";
  lowering.outputs[0] = padded_layout(context.output(0));
  return lowering;
}

template <class From, class To>
Lowering lower_as(const LowerContext& context) {
  const auto& def = context.op.as<Normalize>();
  std::vector<float2> factors;
  for (std::size_t i = 0; i < def.scale.size(); ++i) factors.push_back({def.scale[i], def.offset[i]});
  const std::int64_t count = context.input(0).shape.count();
  const auto lower = [&](auto pack) {
    constexpr int width = decltype(pack)::value;
    const std::uint32_t packs = narrow(count / width);
    return own_kernel(context, [packs, channels = static_cast<std::uint32_t>(factors.size()),
                                factors = on_device(factors)](const Buffers& p) {
      launch(normalize<From, To, width>, blocks_for(packs), block_threads, p.stream, p.in<From>(0), factors.get(),
             channels, packs, p.out<To>(0));
    });
  };
  const auto lower_either = [&]([[maybe_unused]] bool padded) {
    if constexpr (sizeof(To) == 2) {
      if (padded) return lower_padded<From, To>(context, factors);
    }
    return count % 4 == 0 ? lower(std::integral_constant<int, 4>{}) : lower(std::integral_constant<int, 1>{});
  };
  return lower_either(writes_padded(context, lower_either));
}

}  // namespace

Lowering lower_normalize(const LowerContext& context) {
  return with_type(context.op.as<Normalize>().to, [&](auto to) {
    using To = decltype(to);
    const DType from = context.input(0).dtype;
    if (from == DType::uint8) return lower_as<std::uint8_t, To>(context);
    return from == DType::float32 ? lower_as<float, To>(context) : lower_as<To, To>(context);
  });
}

}  // namespace trainctl::cuda
