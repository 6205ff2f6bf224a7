// Random numbers drawn by Philox, a function of (seed, step, sample, layer, element).
#include "core/graph/ops/elementwise/random_numbers.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/math.h"
#include "core/backend/cpu/simd/philox.h"
#include "core/graph/ops/elementwise/noise.h"

namespace trainctl::cpu {
namespace {

struct RandomMath {
  TRAINCTL_INLINE static float log(float x) { return log_approx(x); }
};

// Writes the `count` numbers of a sample.
template <class T, RandomNumbers::Kind distribution>
void draw_numbers(const RandomKey& key, std::uint64_t sample, T* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    std::uint32_t drawn[drawn_words];
    for (std::int64_t start = 0; start < count; start += drawn_words) {
      draw_words(key, sample, static_cast<std::uint32_t>(start / 4), drawn);
      const std::int64_t width = std::min<std::int64_t>(drawn_words, count - start);
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        if constexpr (distribution == RandomNumbers::Kind::normal) {
          y[start + i] = store<T>(standard_normal<RandomMath>(drawn[i]));
        } else {
          y[start + i] = store<T>(uniform01(drawn[i]));
        }
      }
    }
  });
}

template <class T, RandomNumbers::Kind distribution>
Lowering lowering_of(const LowerContext& context) {
  const auto& def = context.op.as<RandomNumbers>();
  const std::int64_t samples = context.output(0).shape[0], count = def.sample.count();
  return own_kernel(context, [=, seed = def.seed, layer = def.layer](const Buffers& buffers) {
    const RandomKey key{seed, Purpose::numbers, static_cast<std::uint32_t>(*buffers.in<std::int64_t>(2)), layer};
    const std::int64_t* numbers = buffers.in<std::int64_t>(1);
    T* y = buffers.out<T>(0);
    parallel_ranges(
        samples, std::max<std::int64_t>(1, element_grain / (4 * count)), [=](std::int64_t begin, std::int64_t end) {
          for (std::int64_t n = begin; n < end; ++n) {
            draw_numbers<T, distribution>(key, static_cast<std::uint64_t>(numbers[n]), y + n * count, count);
          }
        });
  });
}

}  // namespace

Lowering lower_random_numbers(const LowerContext& context) {
  return with_type(context.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return context.op.as<RandomNumbers>().distribution == RandomNumbers::Kind::normal
               ? lowering_of<T, RandomNumbers::Kind::normal>(context)
               : lowering_of<T, RandomNumbers::Kind::uniform>(context);
  });
}

}  // namespace trainctl::cpu
