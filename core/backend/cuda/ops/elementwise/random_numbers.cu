// Random numbers drawn by Philox, a function of (seed, step, sample, layer, element).
#include "core/graph/ops/elementwise/random_numbers.h"

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"
#include "core/base/random.h"
#include "core/graph/ops/elementwise/noise.h"

namespace trainctl::cuda {
namespace {

struct RandomMath {
  __device__ static float log(float x) { return logf(x); }
};

// A thread draws one Philox block for four elements of a sample. A sample has `blocks` such blocks.
template <class T>
__global__ void random_numbers(RandomKey key, bool normal, const std::int64_t* numbers, const std::int64_t* step,
                               std::uint32_t all_blocks, std::uint32_t blocks, std::int64_t elements, T* y) {
  key.round = static_cast<std::uint32_t>(*step);
  for (auto i = static_cast<std::uint32_t>(first_element()); i < all_blocks; i += element_stride()) {
    const std::uint32_t sample = i / blocks, block = i % blocks;
    const PhiloxBlock drawn = key.block(static_cast<std::uint64_t>(numbers[sample]), block);
    const std::int64_t first = std::int64_t{block} * philox_words, offset = std::int64_t{sample} * elements + first;
#pragma unroll
    for (int k = 0; k < philox_words; ++k) {
      if (first + k < elements) {
        y[offset + k] = store<T>(normal ? standard_normal<RandomMath>(drawn[k]) : uniform01(drawn[k]));
      }
    }
  }
}

}  // namespace

Lowering lower_random_numbers(const LowerContext& context) {
  const auto& def = context.op.as<RandomNumbers>();
  const std::int64_t samples = context.output(0).shape[0], elements = def.sample.count();
  const std::uint32_t blocks = narrow((elements + philox_words - 1) / philox_words),
                      all_blocks = narrow(samples * blocks);
  const RandomKey key{def.seed, Purpose::numbers, 0, def.layer};
  return with_type(context.output(0).dtype, [&, normal = def.distribution == RandomNumbers::Kind::normal](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(random_numbers<T>, blocks_for(all_blocks), block_threads, p.stream, key, normal, p.in<std::int64_t>(1),
             p.in<std::int64_t>(2), all_blocks, blocks, elements, p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
