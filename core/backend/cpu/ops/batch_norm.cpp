// Batch normalisation with residual and ReLU fused, training and inference.
#include "core/graph/ops/batch_norm.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/normalisation.h"

namespace trainctl::cpu {

Lowering lower_batch_norm(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNorm>().a;
  const ChannelShape shape = channel_shape(context.input(0));
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Places& places) {
          const Scratch scratch(shape, places.workspace<std::byte>());
          const T* x = places.in<T>(0);
          std::size_t next = 1;
          const float* gamma = a.scale ? places.in<float>(next++) : nullptr;
          const float* beta = a.center ? places.in<float>(next++) : nullptr;
          const T* residual = a.residual ? places.in<T>(next) : nullptr;
          float* mean = places.out<float>(1);
          float* variance = places.out<float>(2);
          statistics(shape, x, scratch, mean, variance);
          const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
          apply(a, shape, x, residual, factors, places.out<T>(0),
                a.masks_by_bits(shape.channels) ? places.out<std::uint8_t>(3) : nullptr);
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
        [=](const Places& places) {
          const Scratch scratch(shape, places.workspace<std::byte>());
          std::size_t next = 1;
          const float* gamma = a.scale ? places.in<float>(next++) : nullptr;
          const float* beta = a.center ? places.in<float>(next++) : nullptr;
          const float* mean = places.in<float>(next++);
          const float* variance = places.in<float>(next++);
          const T* residual = a.residual ? places.in<T>(next) : nullptr;
          const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
          apply(a, shape, places.in<T>(0), residual, factors, places.out<T>(0));
        },
        Scratch::bytes(shape));
  });
}

namespace {

template <class T>
void backward(const BatchNormAttributes& a, const ChannelShape& shape, Backward<T> b, const float* gamma,
              const float* beta, const float* mean, const float* variance, bool add, float* dgamma, float* dbeta,
              const Scratch& scratch) {
  const Factors factors(a, shape, mean, variance, gamma, beta, scratch.constants);
  gradient_sums(a, shape, b, factors, scratch);
  const double* sums = scratch.totals;
  parameter_gradients(a, shape.channels, sums, variance, add, dgamma, dbeta);
  if (a.residual) b.dy = b.dresidual;
  const auto rows = static_cast<double>(shape.rows);
  gradient_by_input(
      a, shape, b, factors, variance, [=](std::int64_t i) { return sums[i] / rows; }, scratch.constants);
}

}  // namespace

Lowering lower_batch_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormGrad>();
  const ChannelShape shape = channel_shape(context.input(0));
  return with_type(context.input(0).dtype, [&, a = def.a, add = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(
        context,
        [=](const Places& places) {
          std::size_t in = 2, out = 1;
          Backward<T> b{places.in<T>(0), places.in<T>(1), nullptr, nullptr, places.out<T>(0), nullptr};
          if (a.masks_by_bits(shape.channels)) b.bits = places.in<std::uint8_t>(in++);
          if (a.masks_by_y(shape.channels)) b.y = places.in<T>(in++);
          const float* gamma = a.scale ? places.in<float>(in++) : nullptr;
          const float* beta = a.center && a.masks_by_x() ? places.in<float>(in++) : nullptr;
          const float* mean = places.in<float>(in++);
          const float* variance = places.in<float>(in);
          float* dgamma = a.scale ? places.out<float>(out++) : nullptr;
          float* dbeta = a.center ? places.out<float>(out++) : nullptr;
          if (a.residual) b.dresidual = places.out<T>(out);
          backward(a, shape, b, gamma, beta, mean, variance, add, dgamma, dbeta,
                   Scratch(shape, places.workspace<std::byte>()));
        },
        Scratch::bytes(shape));
  });
}

}  // namespace trainctl::cpu
