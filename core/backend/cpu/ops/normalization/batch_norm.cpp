// Batch normalisation with fused residual and ReLU, for training and inference.
#include "core/graph/ops/normalization/batch_norm.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/normalization/normalisation.h"

namespace trainctl::cpu {

Lowering lower_batch_norm(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNorm>().a;
  const ChannelShape shape = channel_shape(context.input(0), a.masked);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          const T* x = buffers.in<T>(0);
          std::size_t next = 1;
          const float* gamma = a.scale ? buffers.in<float>(next++) : nullptr;
          const float* beta = a.center ? buffers.in<float>(next++) : nullptr;
          const std::uint8_t* shown = a.masked ? buffers.in<std::uint8_t>(next++) : nullptr;
          const T* residual = a.residual ? buffers.in<T>(next) : nullptr;
          float* mean = buffers.out<float>(1);
          float* variance = buffers.out<float>(2);
          if (a.masked) {
            *buffers.out<float>(3) = static_cast<float>(shown_statistics(shape, x, shown, scratch, mean, variance));
          } else {
            statistics(shape, x, scratch, mean, variance);
          }
          const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
          apply(a, shape, x, residual, factors, buffers.out<T>(0),
                a.masks_by_bits(shape.channels) ? buffers.out<std::uint8_t>(a.masked ? 4 : 3) : nullptr);
        },
        Scratch::bytes(shape));
  });
}

Lowering lower_batch_norm_inference(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNormInference>().a;
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
          const float* mean = buffers.in<float>(next++);
          const float* variance = buffers.in<float>(next++);
          const T* residual = a.residual ? buffers.in<T>(next) : nullptr;
          const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
          apply(a, shape, buffers.in<T>(0), residual, factors, buffers.out<T>(0));
        },
        Scratch::bytes(shape));
  });
}

Lowering lower_batch_norm_inference_grad(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormInferenceGrad>();
  const BatchNormAttributes a{.epsilon = def.epsilon, .scale = def.scale, .center = false};
  const ChannelShape shape = channel_shape(context.input(0));
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          const float* gamma = a.scale ? buffers.in<float>(1) : nullptr;
          const float* variance = buffers.in<float>(a.scale ? 2 : 1);
          const Factors factors(a, shape, nullptr, variance, gamma, nullptr, scratch.constants);
          apply(a, shape, buffers.in<T>(0), static_cast<const T*>(nullptr), factors, buffers.out<T>(0));
        },
        Scratch::bytes(shape));
  });
}

Lowering lower_batch_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormGrad>();
  const ChannelShape shape = channel_shape(context.input(0), def.a.masked);
  return with_type(context.input(0).dtype, [&, a = def.a, add = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Buffers& buffers) {
          const Scratch scratch(shape, buffers.workspace<std::byte>());
          GradientBuffers<T> gradient(a, shape.channels, buffers);
          const Factors factors(a, shape, gradient.mean, gradient.variance, gradient.gamma, gradient.beta,
                                scratch.constants);
          gradient_sums(a, shape, gradient.b, factors, scratch);
          const double* sums = scratch.totals;
          parameter_gradients(a, shape.channels, sums, gradient.variance, add, gradient.dgamma, gradient.dbeta);
          gradient.b.dx = buffers.out<T>(0);
          if (a.residual) gradient.b.dy = gradient.b.dresidual;
          const double rows = a.masked ? double{*gradient.count} : static_cast<double>(shape.rows);
          gradient_by_input(
              a, shape, gradient.b, factors, gradient.variance,
              [=](std::int64_t i) { return rows > 0 ? sums[i] / rows : 0.0; }, scratch.constants);
        },
        Scratch::bytes(shape));
  });
}

}  // namespace trainctl::cpu
