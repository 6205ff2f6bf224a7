// Dropout: a mask drawn by Philox, a function of (seed, step, sample, layer, element).
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"
#include "core/base/random.h"
#include "core/graph/ops/elementwise/dropout.h"

namespace trainctl::cuda {
namespace {

struct DropoutSetting {
  std::uint64_t seed;
  std::uint32_t layer;
  float rate;
  // Element e that this op has of a sample is element e / run * stride + first + e % run of the whole sample.
  std::uint32_t run, stride, first;
  bool scattered;  // whether a pack's elements are not whole Philox blocks

  __device__ std::uint32_t number(std::uint32_t element) const {
    return element / run * stride + first + element % run;
  }
};

// Processes packs of `width` elements, a whole number of Philox blocks. A sample has `packs` packs; the last pack may
// be incomplete. y may be x.
template <class T>
__global__ void dropout(DropoutSetting setting, const T* x, const std::int64_t* numbers, const std::int64_t* step,
                        std::uint32_t all_packs, std::uint32_t packs, std::int64_t elements, T* y) {
  constexpr int width = widest<T>;
  const RandomKey key{setting.seed, Purpose::dropout, static_cast<std::uint32_t>(*step), setting.layer};
  const float scale = 1.0f / (1.0f - setting.rate);
  const bool whole = elements % width == 0;
  for (auto i = static_cast<std::uint32_t>(first_element()); i < all_packs; i += element_stride()) {
    const std::uint32_t sample = i / packs, pack = i % packs;
    bool keeps[width];
    const auto number = static_cast<std::uint64_t>(numbers[sample]);
    const std::int64_t first = static_cast<std::int64_t>(pack) * width,
                       offset = static_cast<std::int64_t>(sample) * elements + first;
    if (setting.scattered) {
      std::uint32_t block = setting.number(static_cast<std::uint32_t>(first)) / philox_words;
      PhiloxBlock drawn = key.block(number, block);
      for (int k = 0; k < width; ++k) {
        const std::uint32_t word = setting.number(static_cast<std::uint32_t>(first) + static_cast<unsigned>(k));
        if (word / philox_words != block) drawn = key.block(number, block = word / philox_words);
        keeps[k] = uniform01(drawn[word % philox_words]) >= setting.rate;
      }
    } else {
      const std::uint32_t begin = setting.number(static_cast<std::uint32_t>(first)) / philox_words;
#pragma unroll
      for (int block = 0; block < width / philox_words; ++block) {
        const PhiloxBlock drawn = key.block(number, begin + static_cast<unsigned>(block));
#pragma unroll
        for (int w = 0; w < philox_words; ++w) keeps[philox_words * block + w] = uniform01(drawn[w]) >= setting.rate;
      }
    }
    if (whole) {
      Pack<T, width> values = pack_at<width>(x + offset);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        values.values[k] = store<T>(keeps[k] ? load(values.values[k]) * scale : 0.0f);
      }
      pack_at<width>(y + offset) = values;
    } else {
#pragma unroll
      for (int k = 0; k < width; ++k) {
        if (first + k < elements) y[offset + k] = store<T>(keeps[k] ? load(x[offset + k]) * scale : 0.0f);
      }
    }
  }
}

}  // namespace

Lowering lower_dropout(const LowerContext& context) {
  const auto& def = context.op.as<Dropout>();
  const std::int64_t samples = context.input(0).shape[0];
  const std::int64_t elements = context.input(0).shape.count() / std::max<std::int64_t>(samples, 1);
  const Dropout::Runs runs = def.runs(context.input(0).shape);
  DropoutSetting setting{def.seed,           def.layer, def.rate, narrow(runs.length), narrow(runs.stride),
                         narrow(runs.first), false};
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    setting.scattered =
        (def.columns || def.unit != DropoutUnit::element) &&
        (setting.run % widest<T> != 0 || setting.stride % philox_words != 0 || setting.first % philox_words != 0);
    const std::uint32_t packs = narrow((elements + widest<T> - 1) / widest<T>), all_packs = narrow(samples * packs);
    return own_kernel(context, [=](const Buffers& p) {
      launch(dropout<T>, blocks_for(all_packs), block_threads, p.stream, setting, p.in<T>(0), p.in<std::int64_t>(1),
             p.in<std::int64_t>(2), all_packs, packs, elements, p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
