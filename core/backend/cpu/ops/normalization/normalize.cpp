// Converts stored samples to the network's input: scales and shifts each channel.
#include "core/graph/ops/normalization/normalize.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {
namespace {

// Scales and offsets repeated over whole pixels, so that a loop over a row needs no division.
struct Pattern {
  std::vector<float> scale, offset;

  explicit Pattern(const Normalize& def) {
    const std::size_t channels = def.scale.size(), pixels = std::max<std::size_t>(1, 256 / channels);
    for (std::size_t i = 0; i < pixels * channels; ++i) {
      scale.push_back(def.scale[i % channels]);
      offset.push_back(def.offset[i % channels]);
    }
  }
  std::int64_t size() const { return static_cast<std::int64_t>(scale.size()); }
};

template <class From, class To>
void normalize(const Pattern& pattern, const From* x, std::int64_t count, To* y) {
  const float *scale = pattern.scale.data(), *offset = pattern.offset.data();
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / pattern.size()) * pattern.size();
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += pattern.size()) {
      const std::int64_t values = std::min(pattern.size(), end - first);
      const From* from = x + first;
      To* to = y + first;
      simd([=]() TRAINCTL_INLINE {
#pragma omp simd
        for (std::int64_t i = 0; i < values; ++i) to[i] = store<To>(load(from[i]) * scale[i] + offset[i]);
      });
    }
  });
}

template <class From, class To>
Lowering lower_as(const LowerContext& context) {
  const Pattern pattern(context.op.as<Normalize>());
  const std::int64_t count = context.input(0).shape.count();
  return own_kernel(
      context, [=](const Buffers& buffers) { normalize(pattern, buffers.in<From>(0), count, buffers.out<To>(0)); });
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

}  // namespace trainctl::cpu
