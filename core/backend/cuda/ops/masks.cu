// Padding masks: makes, combines and applies them. A thread computes one position, or one value.
#include "core/graph/ops/masks.h"

#include "core/backend/cuda/device/divisor.h"
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

__global__ void mask_tokens(std::int64_t count, float padding, const std::int32_t* tokens, std::uint8_t* mask) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    mask[i] = static_cast<float>(tokens[i]) != padding ? 1 : 0;
  }
}

template <class T>
__global__ void mask_values(std::int64_t count, std::int64_t channels, float padding, const T* x, std::uint8_t* mask) {
  const float rounded = load(store<T>(padding));
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    std::uint8_t shown = 0;
    for (std::int64_t c = 0; c < channels && shown == 0; ++c) shown = load(x[i * channels + c]) != rounded ? 1 : 0;
    mask[i] = shown;
  }
}

__global__ void merge(std::int64_t count, bool all, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* mask) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const bool shown = all ? a[i] != 0 && b[i] != 0 : a[i] != 0 || b[i] != 0;
    mask[i] = shown ? 1 : 0;
  }
}

template <class T>
__global__ void apply_mask(std::uint32_t count, Divisor by_channels, const T* x, const std::uint8_t* mask, T* y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    y[i] = mask[by_channels.quotient(static_cast<std::uint32_t>(i))] != 0 ? x[i] : store<T>(0.0f);
  }
}

// The numbers of values of a channel in a batch (samples * channels), of positions, and of channels.
struct MeanGrid {
  std::uint32_t count, steps, channels;
  Divisor by_channels;

  MeanGrid(std::int64_t samples, std::int64_t positions, std::int64_t columns)
      : count(narrow(samples * columns)), steps(narrow(positions)), channels(narrow(columns)), by_channels(columns) {}
};

// 1 / the number of positions of a sample whose mask is 1; 0 if there are none.
__device__ float share_of(const std::uint8_t* mask, std::uint32_t steps) {
  int shown = 0;
  for (std::uint32_t t = 0; t < steps; ++t) shown += mask[t] != 0 ? 1 : 0;
  return shown == 0 ? 0.0f : 1.0f / static_cast<float>(shown);
}

template <class T>
__global__ void add_shown(MeanGrid grid, const T* x, const std::uint8_t* masks, T* y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < grid.count; i += element_stride()) {
    const std::uint32_t sample = grid.by_channels.quotient(i), channel = grid.by_channels.remainder(i, sample);
    const std::uint8_t* mask = masks + std::int64_t{sample} * grid.steps;
    const T* column = x + std::int64_t{sample} * grid.steps * grid.channels + channel;
    float sum = 0;
    for (std::uint32_t t = 0; t < grid.steps; ++t) {
      if (mask[t] != 0) sum += load(column[std::int64_t{t} * grid.channels]);
    }
    y[i] = store<T>(sum * share_of(mask, grid.steps));
  }
}

template <class T>
__global__ void spread_shown(MeanGrid grid, const T* dy, const std::uint8_t* masks, T* dx) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < grid.count; i += element_stride()) {
    const std::uint32_t sample = grid.by_channels.quotient(i), channel = grid.by_channels.remainder(i, sample);
    const std::uint8_t* mask = masks + std::int64_t{sample} * grid.steps;
    T* column = dx + std::int64_t{sample} * grid.steps * grid.channels + channel;
    const float gradient = load(dy[i]), share = share_of(mask, grid.steps);
    for (std::uint32_t t = 0; t < grid.steps; ++t) {
      column[std::int64_t{t} * grid.channels] = store<T>(gradient * (mask[t] != 0 ? share : 0.0f));
    }
  }
}

// The inputs of mask_weights; `mask` and `targets` may be null.
struct WeightInputs {
  const float* weights;
  const std::int64_t* samples;
  const std::uint8_t* mask;
  const std::int32_t* targets;
  std::int32_t ignored;
  std::int64_t positions_per_sample, positions_per_weight;
};

__global__ void weigh_positions(std::int64_t count, WeightInputs in, float* weights, float* counted) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const bool counts = in.samples[i / in.positions_per_sample] >= 0 && (in.mask == nullptr || in.mask[i] != 0) &&
                        (in.targets == nullptr || in.targets[i] != in.ignored);
    weights[i] = counts ? in.weights[i / in.positions_per_weight] : 0.0f;
    counted[i] = counts ? 1.0f : 0.0f;
  }
}

}  // namespace

Lowering lower_position_mask(const LowerContext& context) {
  const float padding = context.op.as<PositionMask>().padding;
  const TensorType& x = context.input(0);
  const std::int64_t count = context.output(0).shape.count();
  if (x.dtype == DType::int32) {
    return own_kernel(context, [=](const Buffers& p) {
      launch(mask_tokens, blocks_for(count), block_threads, p.stream, count, padding, p.in<std::int32_t>(0),
             p.out<std::uint8_t>(0));
    });
  }
  return with_type(x.dtype, [&, channels = x.shape.back()](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(mask_values<T>, blocks_for(count), block_threads, p.stream, count, channels, padding, p.in<T>(0),
             p.out<std::uint8_t>(0));
    });
  });
}

Lowering lower_merge_masks(const LowerContext& context) {
  const bool all = context.op.as<MergeMasks>().all;
  const std::int64_t count = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    launch(merge, blocks_for(count), block_threads, p.stream, count, all, p.in<std::uint8_t>(0), p.in<std::uint8_t>(1),
           p.out<std::uint8_t>(0));
  });
}

Lowering lower_mask_positions(const LowerContext& context) {
  const std::uint32_t count = narrow(context.input(0).shape.count());
  const Divisor by_channels(context.input(0).shape.back());
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(apply_mask<T>, blocks_for(count), block_threads, p.stream, count, by_channels, p.in<T>(0),
             p.in<std::uint8_t>(1), p.out<T>(0));
    });
  });
}

Lowering lower_masked_mean(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const MeanGrid grid(x[0], x[1], x[2]);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(add_shown<T>, blocks_for(grid.count), block_threads, p.stream, grid, p.in<T>(0), p.in<std::uint8_t>(1),
             p.out<T>(0));
    });
  });
}

Lowering lower_masked_mean_grad(const LowerContext& context) {
  const Shape &dy = context.input(0).shape, &mask = context.input(1).shape;
  const MeanGrid grid(dy[0], mask[1], dy[1]);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(spread_shown<T>, blocks_for(grid.count), block_threads, p.stream, grid, p.in<T>(0), p.in<std::uint8_t>(1),
             p.out<T>(0));
    });
  });
}

Lowering lower_mask_weights(const LowerContext& context) {
  const auto& def = context.op.as<MaskWeights>();
  const std::int64_t count = context.output(0).shape.count(), samples = context.input(1).shape.count(),
                     weights = context.input(0).shape.count();
  return own_kernel(context, [=, masked = def.masked, ignored = def.ignored](const Buffers& p) {
    const WeightInputs in{p.in<float>(0),
                          p.in<std::int64_t>(1),
                          masked ? p.in<std::uint8_t>(2) : nullptr,
                          ignored ? p.in<std::int32_t>(masked ? 3 : 2) : nullptr,
                          ignored.value_or(0),
                          count / samples,
                          count / weights};
    launch(weigh_positions, blocks_for(count), block_threads, p.stream, count, in, p.out<float>(0), p.out<float>(1));
  });
}

}  // namespace trainctl::cuda
