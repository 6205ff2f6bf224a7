// Dropout: a mask drawn by Philox, a function of (seed, step, sample, layer, element).
#include <array>

#include "core/backend/cpu/kernels.h"
#include "core/base/random.h"
#include "core/graph/ops/dropout.h"

namespace trainctl::cpu {
namespace {

constexpr int blocks = 16;         // Philox blocks that are drawn together
constexpr int words = 4 * blocks;  // random words of these blocks

// Writes the words of `blocks` consecutive blocks from `index` on, equal to those of RandomKey::block, by vectorised
// loops.
TRAINCTL_INLINE inline void draw(const RandomKey& key, std::uint64_t sample, std::uint32_t index,
                                 std::uint32_t* target) {
  const PhiloxBlock start = key.counter(sample, index);
  const auto low = static_cast<std::uint32_t>(key.seed), high = static_cast<std::uint32_t>(key.seed >> 32);
  std::uint32_t drawn[4][blocks];
#pragma omp simd
  for (int b = 0; b < blocks; ++b) {
    std::uint32_t c0 = start[0], c1 = start[1], c2 = start[2] + static_cast<std::uint32_t>(b), c3 = start[3];
    std::uint32_t k0 = low, k1 = high;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(p1);
      c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    drawn[0][b] = c0;
    drawn[1][b] = c1;
    drawn[2][b] = c2;
    drawn[3][b] = c3;
  }
  for (int b = 0; b < blocks; ++b) {
    for (int word = 0; word < 4; ++word) target[4 * b + word] = drawn[word][b];
  }
}

// y = x / (1 - rate) where uniform01(word) >= rate, else 0.
template <class T>
TRAINCTL_INLINE inline void drop(const std::uint32_t* drawn, float rate, float scale, const T* x, T* y,
                                 std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float uniform = static_cast<float>(static_cast<std::int32_t>(drawn[i] >> 8)) * 0x1p-24f;
    const float value = load(x[i]) * scale;
    y[i] = store<T>(uniform >= rate ? value : 0.0f);
  }
}

// Elements [first, first + count) of a sample.
template <class T>
void drop_elements(const RandomKey& key, std::uint64_t sample, float rate, const T* x, T* y, std::int64_t first,
                   std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    const float scale = 1.0f / (1.0f - rate);
    const std::int64_t last = first + count;
    std::uint32_t drawn[words];
    for (std::int64_t start = first - first % 4; start < last; start += words) {
      draw(key, sample, static_cast<std::uint32_t>(start / 4), drawn);
      if (start >= first && start + words <= last) {
        drop(drawn, rate, scale, x + (start - first), y + (start - first), words);
      } else {
        const std::int64_t begin = std::max(start, first), end = std::min(start + words, last);
        drop(drawn + (begin - start), rate, scale, x + (begin - first), y + (begin - first), end - begin);
      }
    }
  });
}

}  // namespace

Lowering lower_dropout(const LowerContext& context) {
  const auto& def = context.op.as<Dropout>();
  const Shape& x_shape = context.input(0).shape;
  const std::int64_t samples = x_shape[0], count = x_shape.count() / samples;
  // Runs of neighbouring elements of a sample: all of it, or the rows of a part.
  const std::int64_t run = def.part ? x_shape.back() : count, first = def.part ? def.part->first : 0;
  const std::int64_t stride = def.part ? def.part->of : 0;
  return with_type(context.input(0).dtype, [&, seed = def.seed, layer = def.layer, rate = def.rate](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Places& places) {
      const auto step = static_cast<std::uint32_t>(*places.in<std::int64_t>(2));
      const RandomKey key{seed, Purpose::dropout, step, layer};
      const std::int64_t* numbers = places.in<std::int64_t>(1);
      const T* x = places.in<T>(0);
      T* y = places.out<T>(0);
      parallel_ranges(samples, std::max<std::int64_t>(1, element_grain / count),
                      [=](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t n = begin; n < end; ++n) {
                          for (std::int64_t r = 0; r < count / run; ++r) {
                            const std::int64_t at = n * count + r * run;
                            drop_elements(key, static_cast<std::uint64_t>(numbers[n]), rate, x + at, y + at,
                                          first + r * stride, run);
                          }
                        }
                      });
    });
  });
}

}  // namespace trainctl::cpu
