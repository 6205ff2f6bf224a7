// Padding masks: makes, combines and applies them.
#include "core/graph/ops/masks.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/tensor/sample_numbers.h"

namespace trainctl::cpu {
namespace {

// The smallest number of rows of `values` values that is worth a thread.
std::int64_t grain_of(std::int64_t values) {
  return std::max<std::int64_t>(1, element_grain / std::max<std::int64_t>(1, values));
}

// The numbers of samples, positions of a sample, and channels of a position.
struct Sequences {
  std::int64_t samples, steps, channels;
};

// 1 / the number of positions of a sample whose mask is 1; 0 if there are none.
float share_of(const std::uint8_t* mask, std::int64_t steps) {
  const std::int64_t count = std::count_if(mask, mask + steps, [](std::uint8_t shown) { return shown != 0; });
  return count == 0 ? 0.0f : 1.0f / static_cast<float>(count);
}

}  // namespace

Lowering lower_position_mask(const LowerContext& context) {
  const float padding = context.op.as<PositionMask>().padding;
  const TensorType& x = context.input(0);
  const std::int64_t positions = context.output(0).shape.count();
  if (x.dtype == DType::int32) {
    return own_kernel(context, [=](const Buffers& buffers) {
      const auto* tokens = buffers.in<std::int32_t>(0);
      std::transform(tokens, tokens + positions, buffers.out<std::uint8_t>(0), [=](std::int32_t token) {
        return static_cast<std::uint8_t>(static_cast<float>(token) != padding ? 1 : 0);
      });
    });
  }
  return with_type(x.dtype, [&, channels = x.shape.back()](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=, padding = load(store<T>(padding))](const Buffers& buffers) {
      const T* values = buffers.in<T>(0);
      auto* mask = buffers.out<std::uint8_t>(0);
      parallel_ranges(positions, grain_of(channels), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const T* first = values + row * channels;
          mask[row] = std::any_of(first, first + channels, [=](T value) { return load(value) != padding; }) ? 1 : 0;
        }
      });
    });
  });
}

Lowering lower_merge_masks(const LowerContext& context) {
  const bool all = context.op.as<MergeMasks>().all;
  const std::int64_t positions = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    const auto* a = buffers.in<std::uint8_t>(0);
    std::transform(a, a + positions, buffers.in<std::uint8_t>(1), buffers.out<std::uint8_t>(0),
                   [=](std::uint8_t x, std::uint8_t y) {
                     const bool shown = all ? x != 0 && y != 0 : x != 0 || y != 0;
                     return static_cast<std::uint8_t>(shown ? 1 : 0);
                   });
  });
}

Lowering lower_mask_positions(const LowerContext& context) {
  const std::int64_t positions = context.input(1).shape.count(), channels = context.input(0).shape.back();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      const auto* mask = buffers.in<std::uint8_t>(1);
      T* y = buffers.out<T>(0);
      parallel_ranges(positions, grain_of(channels), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          T* to = y + row * channels;
          const T* from = x + row * channels;
          if (mask[row] == 0) {
            std::fill(to, to + channels, T{});
          } else if (to != from) {
            std::copy(from, from + channels, to);
          }
        }
      });
    });
  });
}

Lowering lower_masked_mean(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const Sequences s{x[0], x[1], x[2]};
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const T* values = buffers.in<T>(0);
          const auto* masks = buffers.in<std::uint8_t>(1);
          T* y = buffers.out<T>(0);
          auto* all_sums = buffers.workspace<float>();
          parallel_ranges(s.samples, grain_of(s.steps * s.channels), [=](std::int64_t begin, std::int64_t end) {
            simd([=]() TRAINCTL_INLINE {
              for (std::int64_t n = begin; n < end; ++n) {
                float* sums = all_sums + n * s.channels;
                std::fill(sums, sums + s.channels, 0.0f);
                const std::uint8_t* mask = masks + n * s.steps;
                for (std::int64_t t = 0; t < s.steps; ++t) {
                  if (mask[t] == 0) continue;
                  const T* row = values + (n * s.steps + t) * s.channels;
#pragma omp simd
                  for (std::int64_t c = 0; c < s.channels; ++c) sums[c] += load(row[c]);
                }
                const float share = share_of(mask, s.steps);
                T* means = y + n * s.channels;
#pragma omp simd
                for (std::int64_t c = 0; c < s.channels; ++c) means[c] = store<T>(sums[c] * share);
              }
            });
          });
        },
        s.samples * s.channels * size_of(DType::float32));
  });
}

Lowering lower_masked_mean_grad(const LowerContext& context) {
  const Shape &dy = context.input(0).shape, &mask_shape = context.input(1).shape;
  const Sequences s{dy[0], mask_shape[1], dy[1]};
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* gradients = buffers.in<T>(0);
      const auto* masks = buffers.in<std::uint8_t>(1);
      T* dx = buffers.out<T>(0);
      parallel_ranges(s.samples, grain_of(s.steps * s.channels), [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          for (std::int64_t n = begin; n < end; ++n) {
            const std::uint8_t* mask = masks + n * s.steps;
            const T* own = gradients + n * s.channels;
            const float share = share_of(mask, s.steps);
            for (std::int64_t t = 0; t < s.steps; ++t) {
              T* row = dx + (n * s.steps + t) * s.channels;
              const float factor = mask[t] != 0 ? share : 0.0f;
#pragma omp simd
              for (std::int64_t c = 0; c < s.channels; ++c) row[c] = store<T>(load(own[c]) * factor);
            }
          }
        });
      });
    });
  });
}

Lowering lower_mask_weights(const LowerContext& context) {
  const auto& def = context.op.as<MaskWeights>();
  const std::int64_t count = context.output(0).shape.count(), each = count / context.input(1).shape.count();
  const std::int64_t per_weight = count / context.input(0).shape.count();
  return own_kernel(context, [=, masked = def.masked, ignored = def.ignored](const Buffers& buffers) {
    const auto* weights = buffers.in<float>(0);
    const auto* samples = buffers.in<std::int64_t>(1);
    const std::uint8_t* mask = masked ? buffers.in<std::uint8_t>(2) : nullptr;
    const std::int32_t* targets = ignored ? buffers.in<std::int32_t>(masked ? 3 : 2) : nullptr;
    auto* result = buffers.out<float>(0);
    auto* counted = buffers.out<float>(1);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool counts = is_counted(samples[i / each]) && (mask == nullptr || mask[i] != 0) &&
                          (targets == nullptr || targets[i] != *ignored);
      result[i] = counts ? weights[i / per_weight] : 0.0f;
      counted[i] = counts ? 1.0f : 0.0f;
    }
  });
}

}  // namespace trainctl::cpu
