// Dropout: a mask drawn by Philox, a function of (seed, step, sample, layer, element).
#include "core/graph/ops/elementwise/dropout.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/dropping.h"

namespace trainctl::cpu {
namespace {

// Keeps or drops all `count` elements of a sample, by the first word of the sample.
template <class T>
void drop_sample(const RandomKey& key, std::uint64_t sample, float rate, const T* x, T* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    const float scale = 1.0f / (1.0f - rate);
    const std::int32_t least = least_kept(rate);
    std::uint32_t drawn[drawn_words];
    draw_words(key, sample, 0, drawn);
    std::fill_n(drawn, drawn_words, drawn[0]);
    for (std::int64_t start = 0; start < count; start += drawn_words) {
      drop(drawn, least, scale, x + start, y + start, std::min<std::int64_t>(drawn_words, count - start));
    }
  });
}

}  // namespace

Lowering lower_dropout(const LowerContext& context) {
  const auto& def = context.op.as<Dropout>();
  const Shape& x_shape = context.input(0).shape;
  const std::int64_t samples = x_shape[0], count = x_shape.count() / samples;
  const bool by_sample = def.unit == DropoutUnit::sample;
  const Dropout::Runs runs = def.runs(x_shape);
  return with_type(context.input(0).dtype, [&, seed = def.seed, layer = def.layer, rate = def.rate](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const auto step = static_cast<std::uint32_t>(*buffers.in<std::int64_t>(2));
      const RandomKey key{seed, Purpose::dropout, step, layer};
      const std::int64_t* numbers = buffers.in<std::int64_t>(1);
      const T* x = buffers.in<T>(0);
      T* y = buffers.out<T>(0);
      parallel_ranges(samples, std::max<std::int64_t>(1, element_grain / count),
                      [=](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t n = begin; n < end; ++n) {
                          const auto sample = static_cast<std::uint64_t>(numbers[n]);
                          if (by_sample) drop_sample(key, sample, rate, x + n * count, y + n * count, count);
                          for (std::int64_t r = 0; !by_sample && r < count / runs.length; ++r) {
                            const std::int64_t offset = n * count + r * runs.length;
                            const std::int64_t number = runs.first + r * runs.stride;
                            drop_elements(key, sample, rate, x + offset, y + offset, number, runs.length);
                          }
                        }
                      });
    });
  });
}

}  // namespace trainctl::cpu
