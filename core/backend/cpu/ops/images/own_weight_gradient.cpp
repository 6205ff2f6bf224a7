// Finds, times and lowers this project's kernels for the gradient of a convolution with respect to its kernel.
#include "core/backend/cpu/ops/images/own_weight_gradient.h"

#include "core/backend/cpu/ops/images/conv2d_weights_bf16.h"
#include "core/backend/cpu/ops/images/conv2d_weights_by_taps.h"
#include "core/backend/cpu/ops/images/conv2d_weights_few_channels.h"
#include "core/backend/cpu/ops/images/winograd/convolution.h"
#include "core/backend/cpu/ops/images/winograd/weight_gradient.h"
#include "core/backend/cpu/simd/column_sums.h"
#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl::cpu {
namespace {

// Returns the seconds of the pass over dy that computes the gradient of the bias beside oneDNN's implementations.
double bias_seconds(const LowerContext& context) {
  const TensorType& dy = context.input(1);
  const std::int64_t rows = dy.shape.rows(), channels = dy.shape.back();
  return measure_own(context, column_sums_workspace(rows, channels), 1e30,
                     [&](const void*, const void* gradient, void* sums, void* workspace) {
                       column_sums(dy.dtype, gradient, rows, channels, false, static_cast<float*>(sums), workspace);
                     });
}

OwnKernel of_few_channels(const LowerContext& context) {
  const auto& def = context.op.as<Conv2dGradWeights>();
  const Conv2dWeightsFewChannels gradient(def.window, context.input(0).shape, context.input(1).shape, context.threads);
  const auto seconds = [&context, gradient, bias = def.bias](double best_so_far) {
    const auto call = [&](const void* x, const void* dy, void* dkernel, void* workspace) {
      gradient.run(static_cast<const float*>(x), static_cast<const float*>(dy), false, static_cast<float*>(dkernel),
                   nullptr, static_cast<float*>(workspace));
    };
    return measure_own(context, gradient.workspace_bytes(), best_so_far, call) - (bias ? bias_seconds(context) : 0);
  };
  const auto lower = [&context, gradient, bias = def.bias, add = def.accumulate] {
    const auto body = [=](const Buffers& buffers) {
      gradient.run(buffers.in<float>(0), buffers.in<float>(1), add, buffers.out<float>(0),
                   bias ? buffers.out<float>(1) : nullptr, buffers.workspace<float>());
    };
    return own_kernel(context, body, gradient.workspace_bytes());
  };
  return {format("own:{}", name_of(instruction_set())), true, seconds, lower};
}

// The kernel of `gradient`, whose images have values of type T, with a pass over dy for the gradient of the bias.
template <class T, class Gradient>
OwnKernel beside_bias(const LowerContext& context, const std::string& implementation, bool by_rule,
                      const Gradient& gradient) {
  const auto& def = context.op.as<Conv2dGradWeights>();
  const auto seconds = [&context, gradient](double best_so_far) {
    const auto call = [&](const void* x, const void* dy, void* dkernel, void* workspace) {
      gradient.run(static_cast<const T*>(x), static_cast<const T*>(dy), false, static_cast<float*>(dkernel),
                   static_cast<float*>(workspace));
    };
    return measure_own(context, gradient.workspace_bytes(), best_so_far, call);
  };
  const auto lower = [&context, gradient, implementation, bias = def.bias, add = def.accumulate] {
    const Shape& dy = context.input(1).shape;
    const std::int64_t rows = dy.rows(), channels = dy.back();
    const auto body = [=, dtype = context.input(1).dtype](const Buffers& buffers) {
      gradient.run(buffers.in<T>(0), buffers.in<T>(1), add, buffers.out<float>(0), buffers.workspace<float>());
      if (!bias) return;
      column_sums(dtype, buffers.in<void>(1), rows, channels, add, buffers.out<float>(1), buffers.workspace<void>());
    };
    const std::int64_t bias_bytes = bias ? column_sums_workspace(rows, channels) : 0;
    Lowering lowering = own_kernel(context, body, std::max(gradient.workspace_bytes(), bias_bytes));
    lowering.implementation = implementation;
    return lowering;
  };
  return {implementation, by_rule, seconds, lower};
}

// The kernel by Winograd's minimal filtering for images of T.
template <class T>
void add_winograd(const LowerContext& context, const WinogradWeightGradient& gradient,
                  std::vector<OwnKernel>& kernels) {
  if (gradient.workspace_bytes() > WinogradWeightGradient::most_bytes) return;
  // With less than three quarters of the threads, a direct sum by all of them may take less time.
  const bool by_rule = winograd_by_rule(context.input(0).shape.back(), context.input(1).shape) &&
                       4 * gradient.threads() >= 3 * context.threads;
  kernels.push_back(beside_bias<T>(context, winograd_name(), by_rule, gradient));
}

// Without timing, the products of taps are chosen for few positions and many outputs, for which they took less time
// than all others in the shapes of ResNet-50.
bool taps_by_rule(const Shape& y) {
  constexpr std::int64_t most_positions = 256, least_outputs = 128;
  return y.rows() <= most_positions && y.back() >= least_outputs;
}

}  // namespace

std::vector<OwnKernel> own_weight_gradients(const LowerContext& context) {
  const auto* def = context.op.get_if<Conv2dGradWeights>();
  if (def == nullptr) return {};
  const DType dtype = context.input(0).dtype;
  const Shape &x = context.input(0).shape, &y = context.input(1).shape;
  if (Conv2dWeightsFewChannels::computes(x, y, def->groups, dtype)) return {of_few_channels(context)};
  std::vector<OwnKernel> kernels;
  if (Conv2dWeightsByTaps::computes(y, def->groups, dtype)) {
    const Conv2dWeightsByTaps gradient(def->window, x, y, context.threads);
    kernels.push_back(beside_bias<float>(context, Conv2dWeightsByTaps::name(), taps_by_rule(y), gradient));
  }
  if (WinogradConvolution::computes(def->window, def->groups, x, y)) {
    const WinogradWeightGradient gradient(def->window, x, y, context.threads);
    if (dtype == DType::float32) add_winograd<float>(context, gradient, kernels);
    if (dtype == DType::bfloat16) add_winograd<Bf16>(context, gradient, kernels);
  }
  if (dtype == DType::bfloat16 && def->groups == 1 && Conv2dWeightsBf16::available()) {
    const Conv2dWeightsBf16 gradient(def->window, x, y, context.threads);
    kernels.push_back(beside_bias<Bf16>(context, "own:avx512_bf16", false, gradient));
  }
  return kernels;
}

}  // namespace trainctl::cpu
