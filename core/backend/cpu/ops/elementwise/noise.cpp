// Normal noise drawn by Philox, a function of (seed, step, sample, layer, element).
#include "core/graph/ops/elementwise/noise.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/math.h"
#include "core/backend/cpu/simd/philox.h"

namespace trainctl::cpu {
namespace {

struct NoiseMath {
  TRAINCTL_INLINE static float log(float x) { return log_approx(x); }
};

// y = x + stddev * noise for the `count` elements of a sample.
template <class T>
void add_noise(const RandomKey& key, std::uint64_t sample, float stddev, const T* x, T* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    std::uint32_t drawn[drawn_words];
    for (std::int64_t start = 0; start < count; start += drawn_words) {
      draw_words(key, sample, static_cast<std::uint32_t>(start / 4), drawn);
      const std::int64_t width = std::min<std::int64_t>(drawn_words, count - start);
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        y[start + i] = store<T>(load(x[start + i]) + stddev * standard_normal<NoiseMath>(drawn[i]));
      }
    }
  });
}

}  // namespace

Lowering lower_gaussian_noise(const LowerContext& context) {
  const auto& def = context.op.as<GaussianNoise>();
  const Shape& shape = context.input(0).shape;
  const std::int64_t samples = shape[0], count = shape.without_front().count();
  return with_type(context.input(0).dtype, [&, seed = def.seed, layer = def.layer, stddev = def.stddev](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const RandomKey key{seed, Purpose::noise, static_cast<std::uint32_t>(*buffers.in<std::int64_t>(2)), layer};
      const std::int64_t* numbers = buffers.in<std::int64_t>(1);
      const T* x = buffers.in<T>(0);
      T* y = buffers.out<T>(0);
      parallel_ranges(samples, std::max<std::int64_t>(1, element_grain / (4 * count)),
                      [=](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t n = begin; n < end; ++n) {
                          const auto sample = static_cast<std::uint64_t>(numbers[n]);
                          add_noise(key, sample, stddev, x + n * count, y + n * count, count);
                        }
                      });
    });
  });
}

}  // namespace trainctl::cpu
