// Finds, times and lowers this project's kernels for the gradient of a convolution with respect to its kernel.
#include "core/backend/cpu/ops/images/own_weight_gradient.h"

#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/ops/images/conv2d_weights_bf16.h"
#include "core/backend/cpu/ops/images/conv2d_weights_few_channels.h"
#include "core/backend/cpu/simd/column_sums.h"
#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl::cpu {
namespace {

// Returns the seconds of call(x, dy, dkernel, workspace) on random values of type T.
template <class T, class Call>
double measure(const LowerContext& context, std::int64_t workspace_bytes, double best_so_far, const Call& call) {
  const auto values = [](const TensorType& type) { return random_bytes(type.bytes(), type.dtype); };
  const std::vector<std::byte> x = values(context.input(0)), dy = values(context.input(1));
  std::vector<float> dkernel(static_cast<std::size_t>(context.output(0).shape.count()));
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> workspace(static_cast<std::size_t>(workspace_bytes / 64 + 1));
  const auto as_values = [](const std::vector<std::byte>& bytes) { return reinterpret_cast<const T*>(bytes.data()); };
  return best_seconds([&] { call(as_values(x), as_values(dy), dkernel.data(), workspace.data()->bytes); }, best_so_far);
}

// Returns the seconds of the pass over dy that computes the gradient of the bias beside oneDNN's implementations.
double bias_seconds(const LowerContext& context) {
  const TensorType& dy = context.input(1);
  const std::int64_t rows = dy.shape.rows(), channels = dy.shape.back();
  return measure<float>(context, column_sums_workspace(rows, channels), 1e30,
                        [&](const float*, const float* gradient, float* sums, void* workspace) {
                          column_sums(dy.dtype, gradient, rows, channels, false, sums, workspace);
                        });
}

OwnWeightGradient of_few_channels(const LowerContext& context) {
  const auto& def = context.op.as<Conv2dGradWeights>();
  const Conv2dWeightsFewChannels gradient(def.window, context.input(0).shape, context.input(1).shape, context.threads);
  const auto seconds = [&context, gradient, bias = def.bias](double best_so_far) {
    const auto call = [&](const float* x, const float* dy, float* dkernel, void* workspace) {
      gradient.run(x, dy, false, dkernel, nullptr, static_cast<float*>(workspace));
    };
    return measure<float>(context, gradient.workspace_bytes(), best_so_far, call) - (bias ? bias_seconds(context) : 0);
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

OwnWeightGradient in_bf16(const LowerContext& context) {
  const auto& def = context.op.as<Conv2dGradWeights>();
  const std::string implementation = "own:avx512_bf16";
  const Conv2dWeightsBf16 gradient(def.window, context.input(0).shape, context.input(1).shape, context.threads);
  const auto seconds = [&context, gradient](double best_so_far) {
    const auto call = [&](const Bf16* x, const Bf16* dy, float* dkernel, void* workspace) {
      gradient.run(x, dy, false, dkernel, workspace);
    };
    return measure<Bf16>(context, gradient.workspace_bytes(), best_so_far, call);
  };
  const auto lower = [&context, gradient, implementation, bias = def.bias, add = def.accumulate] {
    const Shape& dy = context.input(1).shape;
    const std::int64_t rows = dy.rows(), channels = dy.back();
    const auto body = [=](const Buffers& buffers) {
      gradient.run(buffers.in<Bf16>(0), buffers.in<Bf16>(1), add, buffers.out<float>(0), buffers.workspace<void>());
      if (!bias) return;
      column_sums(DType::bfloat16, buffers.in<void>(1), rows, channels, add, buffers.out<float>(1),
                  buffers.workspace<void>());
    };
    const std::int64_t bias_bytes = bias ? column_sums_workspace(rows, channels) : 0;
    Lowering lowering = own_kernel(context, body, std::max(gradient.workspace_bytes(), bias_bytes));
    lowering.implementation = implementation;
    return lowering;
  };
  return {implementation, false, seconds, lower};
}

}  // namespace

std::optional<OwnWeightGradient> own_weight_gradient(const LowerContext& context) {
  const auto* def = context.op.get_if<Conv2dGradWeights>();
  if (def == nullptr) return std::nullopt;
  const TensorType& x = context.input(0);
  if (Conv2dWeightsFewChannels::computes(x.shape, context.input(1).shape, def->groups, x.dtype)) {
    return of_few_channels(context);
  }
  if (x.dtype == DType::bfloat16 && def->groups == 1 && Conv2dWeightsBf16::available()) return in_bf16(context);
  return std::nullopt;
}

}  // namespace trainctl::cpu
