// Finds, times and lowers convolutions by Winograd's minimal filtering.
#include "core/backend/cpu/ops/images/own_convolution.h"

#include <optional>

#include "core/backend/cpu/ops/images/winograd/convolution.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl::cpu {
namespace {

// The factor of negative values that computes the function; nullopt for functions of another kind.
std::optional<float> negative_slope(ActivationFunction function) {
  switch (function.kind) {
    case ActivationKind::none:
      return 1.0f;
    case ActivationKind::relu:
      return 0.0f;
    case ActivationKind::leaky_relu:
      return function.slope;
    default:
      return std::nullopt;
  }
}

// The kernel of this project for images of T and convolution kernels of K.
template <class T, class K>
OwnKernel winograd_kernel(const LowerContext& context, const WinogradConvolution& convolution, bool by_rule,
                          float slope) {
  const std::string implementation = winograd_name();
  const auto seconds = [&context, convolution, slope](double best_so_far) {
    const auto call = [&](const void* in, const void* kernel, void* out, void* workspace) {
      convolution.run(static_cast<const T*>(in), static_cast<const K*>(kernel), nullptr, slope, static_cast<T*>(out),
                      static_cast<float*>(workspace));
    };
    return measure_own(context, convolution.workspace_bytes(), best_so_far, call);
  };
  const auto lower = [&context, convolution, slope, implementation] {
    const auto body = [convolution, slope, bias = context.op.inputs.size() > 2](const Buffers& buffers) {
      convolution.run(buffers.in<T>(0), buffers.in<K>(1), bias ? buffers.in<float>(2) : nullptr, slope,
                      buffers.out<T>(0), buffers.workspace<float>());
    };
    Lowering lowering = own_kernel(context, body, convolution.workspace_bytes());
    lowering.implementation = implementation;
    return lowering;
  };
  return {implementation, by_rule, seconds, lower};
}

std::vector<OwnKernel> winograd_kernels(const LowerContext& context, const WinogradConvolution& convolution,
                                        bool by_rule, float slope) {
  if (convolution.workspace_bytes() > WinogradConvolution::most_bytes) return {};
  const DType images = context.input(0).dtype, kernel = context.input(1).dtype;
  if (images == DType::float32) return {winograd_kernel<float, float>(context, convolution, by_rule, slope)};
  if (kernel == DType::float32) return {winograd_kernel<Bf16, float>(context, convolution, by_rule, slope)};
  return {winograd_kernel<Bf16, Bf16>(context, convolution, by_rule, slope)};
}

}  // namespace

std::vector<OwnKernel> own_convolutions(const LowerContext& context) {
  const DType images = context.input(0).dtype, kernel = context.input(1).dtype;
  if (images != DType::float32 && images != DType::bfloat16) return {};
  if (kernel != DType::float32 && kernel != images) return {};  // bfloat16: gathered as such
  const Shape& in = context.input(0).shape;
  if (const auto* def = context.op.get_if<Conv2d>()) {
    const Shape& out = context.output(0).shape;
    const std::optional<float> slope = negative_slope(def->function);
    if (!slope || !WinogradConvolution::computes(def->window, def->groups, in, out)) return {};
    return winograd_kernels(context, {def->window, in, out, false, context.threads}, winograd_by_rule(in.back(), out),
                            *slope);
  }
  if (const auto* def = context.op.get_if<Conv2dGradInput>()) {
    if (!WinogradConvolution::computes(def->window, def->groups, def->input, in)) return {};
    return winograd_kernels(context, {def->window, def->input, in, true, context.threads},
                            winograd_by_rule(in.back(), def->input), 1.0f);
  }
  return {};
}

}  // namespace trainctl::cpu
