// Convolutions, forward and backward: the fastest of cuDNN's engines, of its graphs that fuse bias and activation, and
// where a convolution is one, of cuBLASLt's matrix product.
//
// Ways are recorded as "engine 62:2=4,13=0", "fused 41:24=7" or "product".
#include <algorithm>
#include <array>
#include <optional>

#include "core/backend/cuda/column_sums.h"
#include "core/backend/cuda/convolution.h"
#include "core/backend/cuda/dense.h"
#include "core/backend/cuda/elementwise.h"
#include "core/backend/cuda/engines.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/transpose.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

constexpr const char *engine_prefix = "engine ", *fused_prefix = "fused ", *product_name = "product";
constexpr std::int64_t alignment = 256;  // of parts of the workspace

GraphTarget target_of(const LowerContext& context) { return {context.device.cudnn(), nullptr}; }

EngineRules rules_of(const LowerContext& context, DType dtype) {
  const DeviceOptions& options = context.device.options();
  return {.deterministic = options.deterministic, .tensor_cores = dtype != DType::float32 || options.tf32};
}

// A 1x1 convolution without strides, padding and groups is a dense layer over pixels.
std::optional<DenseShape> dense_shape(const ConvolutionShape& s) {
  const Window unit;
  if (!(s.window == unit) || s.groups != 1) return {};
  return DenseShape{s.y.count() / s.y[3], s.x[3], s.y[3], s.dtype};
}

// An op's graph; null where cuDNN does not support it.
using GraphPointer = std::shared_ptr<const Graph>;

GraphPointer finalized(const LowerContext& context, Graph graph) {
  return graph.finalize(target_of(context)) ? std::make_shared<const Graph>(std::move(graph)) : nullptr;
}

void list(const LowerContext& context, const GraphPointer& graph, std::string_view prefix, DType dtype,
          std::vector<std::string>& names) {
  if (!graph) return;
  for (const std::string& engine : list_engines(*graph, target_of(context), rules_of(context, dtype))) {
    names.push_back(std::string(prefix) + engine);
  }
}

// The plan of a recorded way, where it begins with the prefix.
std::optional<Plan> plan_of(const LowerContext& context, const GraphPointer& graph, std::string_view prefix,
                            std::string_view name) {
  if (!graph || !name.starts_with(prefix)) return {};
  auto plan = Plan::make(*graph, target_of(context), name.substr(prefix.size()));
  if (plan && plan->workspace_bytes() > EngineRules{}.most_workspace_bytes) return {};
  return plan;
}

// A way by a plan; the kernel, input 1 of the forward pass and of the gradient by the input, lies as cuDNN wants it.
Way way_of(const LowerContext& context, const std::string& name, std::int64_t workspace_bytes) {
  Way way;
  way.implementation = "cudnn " + name;
  way.inputs = context.logical().inputs;
  way.workspace_bytes = workspace_bytes;
  return way;
}

void ask_for_kernel(const LowerContext& context, DType dtype, Way& way) {
  way.inputs[1] = {dtype, "ohwi", context.input(1).shape.count() * size_of(dtype)};
}

bool can_fuse(bool bias, const ActivationFunction& function) {
  const bool activates = function.kind != ActivationKind::none;
  return activates ? is_pointwise(function) : bias;
}

}  // namespace

Lowering lower_conv2d(const LowerContext& context) {
  const auto& def = context.op.as<Conv2d>();
  const DType dtype = context.input(0).dtype;
  const ConvolutionShape shape{def.window, def.groups, context.input(0).shape, context.output(0).shape, dtype};
  const bool bias = context.op.inputs.size() > 2;
  const ActivationFunction function = def.function;
  const auto dense = dense_shape(shape);
  const GraphPointer plain = finalized(context, convolution_graph(Convolving::forward, shape, dtype));
  const GraphPointer fused =
      can_fuse(bias, function) ? finalized(context, fused_convolution_graph(shape, bias, function)) : nullptr;

  const auto names = [&] {
    std::vector<std::string> names;
    list(context, fused, fused_prefix, dtype, names);
    list(context, plain, engine_prefix, dtype, names);
    if (dense) names.push_back(product_name);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Way> {
    if (name == product_name && dense) return dense_forward(context, *dense, bias, function);
    if (auto plan = plan_of(context, fused, fused_prefix, name)) {
      Way way = way_of(context, name, plan->workspace_bytes());
      ask_for_kernel(context, dtype, way);
      if (bias) way.inputs[2] = {dtype, "", shape.y[3] * size_of(dtype)};
      way.run = [plan = *plan, bias, handle = context.device.cudnn()](const Places& p) mutable {
        const std::array<void*, 4> places{p.in<void>(0), p.in<void>(1), p.out<void>(0), bias ? p.in<void>(2) : nullptr};
        plan.run(handle, p.stream, std::span(places).first(bias ? 4 : 3), p.workspace<void>());
      };
      return way;
    }
    auto plan = plan_of(context, plain, engine_prefix, name);
    if (!plan) return {};
    Way way = way_of(context, name, plan->workspace_bytes());
    ask_for_kernel(context, dtype, way);
    way.run = [plan = *plan, bias, function, shape, handle = context.device.cudnn()](const Places& p) mutable {
      void* y = p.out<void>(0);
      plan.run(handle, p.stream, std::array{p.in<void>(0), p.in<void>(1), y}, p.workspace<void>());
      const std::int64_t count = shape.y.count(), channels = shape.y[3];
      if (bias) {
        bias_activate(function, shape.dtype, y, p.in<float>(2), count / channels, channels, p.stream);
      } else if (function.kind != ActivationKind::none) {
        activate(function, shape.dtype, y, count, p.stream);
      }
    };
    return way;
  };
  return lower_fastest(context, {names, make});
}

Lowering lower_conv2d_grad_input(const LowerContext& context) {
  const auto& def = context.op.as<Conv2dGradInput>();
  const DType dtype = context.input(0).dtype;
  const ConvolutionShape shape{def.window, def.groups, def.input, context.input(0).shape, dtype};
  const auto dense = dense_shape(shape);
  const GraphPointer graph =
      finalized(context, convolution_graph(Convolving::input_gradient, shape, dtype, def.accumulate));

  const auto names = [&] {
    std::vector<std::string> names;
    list(context, graph, engine_prefix, dtype, names);
    if (dense) names.push_back(product_name);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Way> {
    if (name == product_name && dense) return dense_input_gradient(context, *dense, def.accumulate);
    auto plan = plan_of(context, graph, engine_prefix, name);
    if (!plan) return {};
    Way way = way_of(context, name, plan->workspace_bytes());
    ask_for_kernel(context, dtype, way);
    way.run = [plan = *plan, add = def.accumulate, bytes = context.output(0).bytes(),
               handle = context.device.cudnn()](const Places& p) mutable {
      if (add) copy_unless_in_place(p, 2, bytes);
      plan.run(handle, p.stream, std::array{p.out<void>(0), p.in<void>(1), p.in<void>(0)}, p.workspace<void>());
    };
    return way;
  };
  return lower_fastest(context, {names, make});
}

// cuDNN's engines write the gradient of the kernel as [out, height, width, in / groups], in the dtype of x and dy, into
// the workspace; from there it is transposed into (or added to) the logical float32 gradient.
Lowering lower_conv2d_grad_weights(const LowerContext& context) {
  const auto& def = context.op.as<Conv2dGradWeights>();
  const DType dtype = context.input(0).dtype;
  const ConvolutionShape shape{def.window, def.groups, context.input(0).shape, context.input(1).shape, dtype};
  const auto dense = dense_shape(shape);
  const GraphPointer graph = finalized(context, convolution_graph(Convolving::weight_gradient, shape, dtype));
  const std::int64_t channels = shape.y[3];
  std::optional<ColumnSums> sums;
  if (def.bias) sums.emplace(dtype, shape.y.count() / channels, channels);
  const std::int64_t kernel_count = shape.kernel().count();
  const std::int64_t kernel_bytes = (kernel_count * size_of(dtype) + alignment - 1) / alignment * alignment;

  const auto names = [&] {
    std::vector<std::string> names;
    list(context, graph, engine_prefix, dtype, names);
    if (dense) names.push_back(product_name);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Way> {
    if (name == product_name && dense) return dense_weight_gradient(context, *dense, def.bias, def.accumulate);
    auto plan = plan_of(context, graph, engine_prefix, name);
    if (!plan) return {};
    const std::int64_t rest = std::max(plan->workspace_bytes(), sums ? sums->workspace_bytes() : 0);
    Way way = way_of(context, name, kernel_bytes + rest);
    way.run = [=, plan = *plan, add = def.accumulate, handle = context.device.cudnn()](const Places& p) mutable {
      void *dkernel = p.workspace<void>(), *scratch = p.workspace<void>(kernel_bytes);
      plan.run(handle, p.stream, std::array{p.in<void>(0), dkernel, p.in<void>(1)}, scratch);
      transpose(dtype, dkernel, channels, kernel_count / channels, DType::float32, p.out<void>(0), add, p.stream);
      if (sums) sums->run(p.in<void>(1), add, p.out<float>(1), scratch, p.stream);
    };
    return way;
  };
  return lower_fastest(context, {names, make});
}

}  // namespace trainctl::cuda
