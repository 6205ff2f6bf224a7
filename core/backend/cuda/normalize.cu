// The network's input from stored samples: scaled and shifted, by channel.
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/own_memory.h"
#include "core/backend/cuda/pack.h"
#include "core/graph/ops/activations.h"

namespace trainctl::cuda {
namespace {

// Packs of `width` values; `factors` hold scale and offset of each channel.
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
                                factors = on_device(factors)](const Places& p) {
      launch(normalize<From, To, width>, blocks_for(packs), block_threads, p.stream, p.in<From>(0), factors.get(),
             channels, packs, p.out<To>(0));
    });
  };
  return count % 4 == 0 ? lower(std::integral_constant<int, 4>{}) : lower(std::integral_constant<int, 1>{});
}

}  // namespace

Lowering lower_normalize(const LowerContext& context) {
  return with_type(context.op.as<Normalize>().to, [&](auto to) {
    using To = decltype(to);
    return context.input(0).dtype == DType::uint8 ? lower_as<std::uint8_t, To>(context) : lower_as<float, To>(context);
  });
}

}  // namespace trainctl::cuda
