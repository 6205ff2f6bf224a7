// Batch normalisation by the statistics of all ranks: computes moments, merges them, normalises, and computes the
// gradient in two steps.
#include "core/graph/ops/normalization/synchronized_batch_norm.h"

#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/normalization/batch_norm_gradient.h"
#include "core/backend/cuda/ops/normalization/masked_statistics.h"
#include "core/tensor/sample_numbers.h"

namespace trainctl::cuda {
namespace {

// Turns a mean and a variance into moments, the rows mean, `squares` and number of values. `squares` holds the variance
// at first, and the number of values follows it. That number is 0 if the rank has no samples of the micro-batch. The
// variance is that of `all_rows` values or, with a padding mask, of *shown values.
__global__ void finish_moments(float* squares, std::int64_t channels, float all_rows, const float* shown,
                               const std::int64_t* samples) {
  const float rows = shown != nullptr ? *shown : all_rows, count = *samples == no_sample ? 0.0f : rows;
  for (std::int64_t c = first_element(); c < channels; c += element_stride()) {
    squares[c] *= rows;
    squares[channels + c] = count;
  }
}

// The moments of all ranks: [ranks][mean, squares, count][channels].
struct Moments {
  const float* all;
  int ranks;
  std::int64_t channels;

  __device__ double mean(int rank, std::int64_t c) const { return all[moment_rows * rank * channels + c]; }
  __device__ double squares(int rank, std::int64_t c) const { return all[(moment_rows * rank + 1) * channels + c]; }
  __device__ double count(int rank, std::int64_t c) const { return all[(moment_rows * rank + 2) * channels + c]; }
};

__global__ void merge_moments(Moments moments, const float* own, float* mean, float* variance, float* share) {
  for (std::int64_t c = first_element(); c < moments.channels; c += element_stride()) {
    double count = 0, middle = 0, squares = 0;
    for (int r = 0; r < moments.ranks; ++r) count += moments.count(r, c);
    for (int r = 0; r < moments.ranks; ++r) {
      if (moments.count(r, c) > 0) middle += moments.count(r, c) / count * moments.mean(r, c);
    }
    for (int r = 0; r < moments.ranks; ++r) {
      const double rows = moments.count(r, c), distance = moments.mean(r, c) - middle;
      if (rows > 0) squares += moments.squares(r, c) + rows * distance * distance;
    }
    mean[c] = static_cast<float>(middle);
    variance[c] = count > 0 ? static_cast<float>(squares / count) : 0.0f;
    if (c == 0) *share = own[2 * moments.channels] > 0 ? static_cast<float>(1 / count) : 0.0f;
  }
}

// The (dy_mean, slope) of each channel for dx, from the sums over all ranks.
__global__ void means_of_sums(const float* sums, std::int64_t channels, const float* variance, float epsilon,
                              const float* share, float2* means) {
  const double part = *share;
  for (std::int64_t c = first_element(); c < channels; c += element_stride()) {
    const double inverse = 1.0 / sqrt(static_cast<double>(variance[c]) + epsilon);
    means[c] = {static_cast<float>(sums[c] * part), static_cast<float>(sums[channels + c] * part * inverse * inverse)};
  }
}

template <class T, int width, ReluMask mask>
Lowering lower_sums(const LowerContext& context) {
  const auto& def = context.op.as<SynchronizedBatchNormSums>();
  constexpr int sums_width = mask == ReluMask::bits ? bits_of_byte : width;
  const Grids grids = Grids::of<T>(context.input(1).shape, context.device, sums_width, width);
  return own_kernel(
      context,
      [=, a = def.a, accumulate = def.accumulate, counters = make_counters(grids.sums.tiles)](const Buffers& p) {
        auto [b, n] = GradientBuffers<T, mask>(a, accumulate, p);
        b.sums = p.out<float>(0);
        launch(gradient_sums<T, sums_width, mask, InPlaceGradient>, grids.sums.blocks(), channel_threads, p.stream,
               grids.sums, n, b, InPlaceGradient{}, p.workspace<float2>(), counters.get(), nullptr);
      },
      grids.partials_bytes());
}

template <class T, int width, ReluMask mask>
Lowering lower_gradient(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<SynchronizedBatchNormGrad>().a;
  const Grids grids = Grids::of<T>(context.input(1).shape, context.device, width, width);
  return own_kernel(
      context,
      [=](const Buffers& p) {
        std::size_t in = 2;
        Backward<T> b{};
        b.dy = p.in<T>(0), b.x = p.in<T>(1), b.dx = p.out<T>(0);
        Normalisation n{nullptr, nullptr, nullptr, nullptr, a.epsilon, a.relu};
        if (a.scale) n.gamma = p.in<float>(in++);
        if (mask == ReluMask::x && a.center) n.beta = p.in<float>(in++);
        n.mean = p.in<float>(in++);
        n.variance = p.in<float>(in++);
        auto* means = p.workspace<float2>();
        const std::int64_t channels = grids.elements.channels;
        launch(means_of_sums, blocks_for(channels), block_threads, p.stream, p.in<float>(in + 1), channels, n.variance,
               a.epsilon, p.in<float>(in), means);
        const auto by_input = [&](auto kernel) {
          launch(kernel, grids.elements.blocks(), channel_threads, p.stream, grids.elements, n, b, InPlaceGradient{},
                 means);
        };
        if constexpr (width <= widest_masked) {
          if (a.masked) {
            b.shown = p.in<std::uint8_t>(in + 2);
            return by_input(gradient_by_input<T, width, mask, InPlaceGradient, true>);
          }
        }
        by_input(gradient_by_input<T, width, mask, InPlaceGradient>);
      },
      grids.means_bytes());
}

// The moments over the rows that a padding mask shows. In the workspace, the number of these rows comes
// after the partial results.
template <class T, int width>
Lowering lower_shown_moments(const LowerContext& context) {
  const Grids grids = Grids::of<T>(context.input(0).shape, context.device, width, width);
  const std::int64_t bytes = ShownPartials::bytes(grids.sums), channels = grids.sums.channels;
  return own_kernel(
      context,
      [=, counters = make_counters(grids.sums.tiles)](const Buffers& p) {
        float *mean = p.out<float>(0), *squares = mean + channels, *count = p.workspace<float>(bytes);
        launch(shown_statistics<T, width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, p.in<T>(0),
               p.in<std::uint8_t>(2), ShownPartials(grids.sums, p.workspace<float2>()), counters.get(), mean, squares,
               count);
        launch(finish_moments, blocks_for(channels), block_threads, p.stream, squares, channels, 0.0f, count,
               p.in<std::int64_t>(1));
      },
      bytes + static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace

Lowering lower_batch_moments(const LowerContext& context) {
  const std::int64_t channels = context.input(0).shape.back();
  return with_packs(context.input(0).dtype, channels, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    if (context.op.as<BatchMoments>().masked) return lower_shown_moments<T, narrower<width>>(context);
    const Grids grids = Grids::of<T>(context.input(0).shape, context.device, width, width);
    return own_kernel(
        context,
        [=, counters = make_counters(grids.sums.tiles)](const Buffers& p) {
          float *mean = p.out<float>(0), *squares = mean + channels;
          launch(statistics<T, width>, grids.sums.blocks(), channel_threads, p.stream, grids.sums, p.in<T>(0),
                 p.workspace<float2>(), counters.get(), mean, squares);
          launch(finish_moments, blocks_for(channels), block_threads, p.stream, squares, channels,
                 static_cast<float>(grids.sums.rows), nullptr, p.in<std::int64_t>(1));
        },
        grids.partials_bytes());
  });
}

Lowering lower_merge_moments(const LowerContext& context) {
  const int ranks = static_cast<int>(context.input(0).shape[0] / moment_rows);
  const std::int64_t channels = context.input(0).shape[1];
  return own_kernel(context, [=](const Buffers& p) {
    launch(merge_moments, blocks_for(channels), block_threads, p.stream, Moments{p.in<float>(0), ranks, channels},
           p.in<float>(1), p.out<float>(0), p.out<float>(1), p.out<float>(2));
  });
}

Lowering lower_synchronized_batch_norm(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<SynchronizedBatchNorm>().a;
  const std::int64_t channels = context.input(0).shape.back();
  return with_packs(context.input(0).dtype, channels, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const auto lower = [&](auto element_pack) {
      constexpr int element_width = decltype(element_pack)::value;
      const ChannelGrid grid = Grids::of<T>(context.input(0).shape, context.device, width, element_width).elements;
      return own_kernel(context, [=, masks = a.masks_by_bits(channels)](const Buffers& p) {
        std::size_t next = 1;
        Normalisation n{nullptr, nullptr, nullptr, nullptr, a.epsilon, a.relu};
        if (a.scale) n.gamma = p.in<float>(next++);
        if (a.center) n.beta = p.in<float>(next++);
        if (a.masked) ++next;  // the padding mask, which only the gradient reads
        n.mean = p.in<float>(next);
        n.variance = p.in<float>(next + 1);
        const T* residual = a.residual ? p.in<T>(next + 3) : nullptr;
        launch(normalise<T, element_width>, grid.blocks(), channel_threads, p.stream, grid, n, p.in<T>(0), residual,
               p.out<T>(0), masks ? p.out<std::uint8_t>(1) : nullptr);
      });
    };
    if constexpr (width > 1) {
      if (a.masks_by_bits(channels)) return lower(std::integral_constant<int, bits_of_byte>{});
    }
    return lower(std::integral_constant<int, narrower<width>>{});
  });
}

Lowering lower_synchronized_batch_norm_sums(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<SynchronizedBatchNormSums>().a;
  const TensorType& x = context.input(1);
  const std::int64_t channels = x.shape.back();
  return with_gradient_width(x.dtype, gradient_widths(x).front(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    if (a.masks_by_x()) return lower_sums<T, width, ReluMask::x>(context);
    if constexpr (width > 1) {
      if (a.masks_by_bits(channels)) return lower_sums<T, width, ReluMask::bits>(context);
    }
    if constexpr (width < 8) {
      if (a.masks_by_y(channels)) return lower_sums<T, width, ReluMask::y>(context);
    }
    return lower_sums<T, width, ReluMask::none>(context);
  });
}

Lowering lower_synchronized_batch_norm_grad(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<SynchronizedBatchNormGrad>().a;
  const TensorType& x = context.input(1);
  return with_gradient_width(x.dtype, gradient_widths(x).front(), [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    if (a.masks_by_x()) return lower_gradient<T, width, ReluMask::x>(context);
    return lower_gradient<T, width, ReluMask::none>(context);
  });
}

}  // namespace trainctl::cuda
