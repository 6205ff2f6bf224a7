// Batch normalisation by the statistics of all ranks: moments, merging of moments, normalisation, and the gradient in
// two steps.
#include "core/graph/ops/normalization/synchronized_batch_norm.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/normalization/normalisation.h"
#include "core/tensor/sample_numbers.h"

namespace trainctl::cpu {
namespace {

// The number of values of a channel on all ranks.
double all_values(const float* all, std::int64_t ranks, std::int64_t channels, std::int64_t c) {
  double count = 0;
  for (std::int64_t r = 0; r < ranks; ++r) count += all[(moment_rows * r + 2) * channels + c];
  return count;
}

// Merges the moments of a channel over the ranks. `all` is [ranks][mean, squares, count][channels].
void merge(const float* all, std::int64_t ranks, std::int64_t channels, std::int64_t c, float& mean, float& variance) {
  const double count = all_values(all, ranks, channels, c);
  const auto each = [&](const auto& add) {
    for (std::int64_t r = 0; r < ranks; ++r) {
      const float* own = all + moment_rows * r * channels + c;
      if (own[2 * channels] > 0) add(double{own[0]}, double{own[channels]}, double{own[2 * channels]});
    }
  };
  double middle = 0, squares = 0;
  each([&](double own_mean, double, double own_count) { middle += own_count / count * own_mean; });
  each([&](double own_mean, double own_squares, double own_count) {
    squares += own_squares + own_count * (own_mean - middle) * (own_mean - middle);
  });
  mean = static_cast<float>(middle);
  variance = count > 0 ? static_cast<float>(squares / count) : 0.0f;
}

}  // namespace

Lowering lower_batch_moments(const LowerContext& context) {
  const bool masked = context.op.as<BatchMoments>().masked;
  const ChannelShape shape = channel_shape(context.input(0), masked);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          float *mean = buffers.out<float>(0), *squares = mean + shape.channels, *counts = squares + shape.channels;
          const T* x = buffers.in<T>(0);
          std::int64_t rows = shape.rows;
          if (masked) {
            rows = shown_statistics(shape, x, buffers.in<std::uint8_t>(2), scratch, mean, squares);
          } else {
            statistics(shape, x, scratch, mean, squares);
          }
          const float count = *buffers.in<std::int64_t>(1) == no_sample ? 0.0f : static_cast<float>(rows);
          for (std::int64_t c = 0; c < shape.channels; ++c) {
            squares[c] *= static_cast<float>(rows);  // `squares` holds the variance before
            counts[c] = count;
          }
        },
        Scratch::bytes(shape));
  });
}

Lowering lower_merge_moments(const LowerContext& context) {
  const std::int64_t ranks = context.input(0).shape[0] / moment_rows, channels = context.input(0).shape[1];
  return own_kernel(context, [=](const Buffers& buffers) {
    const float *all = buffers.in<float>(0), *own = buffers.in<float>(1);
    float *mean = buffers.out<float>(0), *variance = buffers.out<float>(1);
    for (std::int64_t c = 0; c < channels; ++c) merge(all, ranks, channels, c, mean[c], variance[c]);
    const bool has_values = own[2 * channels] > 0;
    *buffers.out<float>(2) = has_values ? static_cast<float>(1 / all_values(all, ranks, channels, 0)) : 0.0f;
  });
}

Lowering lower_synchronized_batch_norm(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<SynchronizedBatchNorm>().a;
  const ChannelShape shape = channel_shape(context.input(0));
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          std::size_t next = 1;
          const float* gamma = a.scale ? buffers.in<float>(next++) : nullptr;
          const float* beta = a.center ? buffers.in<float>(next++) : nullptr;
          if (a.masked) ++next;  // the padding mask, which only the gradient reads
          const float *mean = buffers.in<float>(next), *variance = buffers.in<float>(next + 1);
          const T* residual = a.residual ? buffers.in<T>(next + 3) : nullptr;
          const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
          apply(a, shape, buffers.in<T>(0), residual, factors, buffers.out<T>(0),
                a.masks_by_bits(shape.channels) ? buffers.out<std::uint8_t>(1) : nullptr);
        },
        Scratch::bytes(shape));
  });
}

Lowering lower_synchronized_batch_norm_sums(const LowerContext& context) {
  const auto& def = context.op.as<SynchronizedBatchNormSums>();
  const ChannelShape shape = channel_shape(context.input(1));
  return with_type(context.input(1).dtype, [&, a = def.a, add = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          const GradientBuffers<T> gradient(a, shape.channels, buffers);
          const Factors factors(a, shape, gradient.mean, gradient.variance, gradient.gamma, gradient.beta,
                                scratch.constants);
          gradient_sums(a, shape, gradient.b, factors, scratch);
          parameter_gradients(a, shape.channels, scratch.totals, gradient.variance, add, gradient.dgamma,
                              gradient.dbeta);
          float* sums = buffers.out<float>(0);
          for (std::int64_t i = 0; i < 2 * shape.channels; ++i) sums[i] = static_cast<float>(scratch.totals[i]);
        },
        Scratch::bytes(shape));
  });
}

Lowering lower_synchronized_batch_norm_grad(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<SynchronizedBatchNormGrad>().a;
  const ChannelShape shape = channel_shape(context.input(1), a.masked);
  return with_type(context.input(1).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          std::size_t in = 2;
          Backward<T> b{buffers.in<T>(0), buffers.in<T>(1), nullptr, nullptr, buffers.out<T>(0), nullptr};
          const float* gamma = a.scale ? buffers.in<float>(in++) : nullptr;
          const float* beta = a.center && a.masks_by_x() ? buffers.in<float>(in++) : nullptr;
          const float *mean = buffers.in<float>(in), *variance = buffers.in<float>(in + 1);
          const double share = *buffers.in<float>(in + 2);
          const float* sums = buffers.in<float>(in + 3);
          if (a.masked) b.shown = buffers.in<std::uint8_t>(in + 4);
          const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
          gradient_by_input(
              a, shape, b, factors, variance, [=](std::int64_t i) { return sums[i] * share; }, scratch.constants);
        },
        Scratch::bytes(shape));
  });
}

}  // namespace trainctl::cpu
