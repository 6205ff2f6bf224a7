// Lowers convolutions, forward and backward, to the fastest candidate. Candidates are cuDNN's engines, cuDNN's graphs
// that fuse bias and activation, this project's kernels for few channels, and cuBLASLt's products for 1x1 convolutions.
//
// Candidates are recorded as "engine 62:2=4,13=0", "fused 41:24=7", or by the names of products (dense.h) and of
// kernels for few channels (few_channels.h).
#include "core/backend/cuda/ops/images/convolution.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/backend/cuda/cudnn/convolution.h"
#include "core/backend/cuda/cudnn/plans.h"
#include "core/backend/cuda/device/column_sums.h"
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/device/transpose.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/dense.h"
#include "core/backend/cuda/ops/images/few_channels.h"
#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl::cuda {
namespace {

constexpr const char *engine_prefix = "engine ", *fused_prefix = "fused ";
constexpr std::int64_t range_alignment = 256;  // of the ranges of the workspace, in bytes

EngineRules rules_of(const LowerContext& context, DType dtype) {
  const DeviceOptions& options = context.device.options();
  return {.deterministic = options.deterministic, .tensor_cores = dtype != DType::float32 || options.tf32};
}

// A 1x1 convolution without strides, padding and groups is a dense layer over pixels. Returns the shape of that layer;
// empty for other convolutions.
template <std::size_t axes>
std::optional<DenseShape> dense_shape(const ConvolutionShapeOf<axes>& s) {
  const WindowOf<axes> unit;
  if (!(s.window == unit) || s.groups != 1) return {};
  return DenseShape{s.y.rows(), s.x.back(), s.y.back(), s.dtype};
}

// An op's graphs, null if the op has no such graph. The names of a graph's engines begin with the graph's prefix.
struct OpGraphs {
  Plans::GraphPointer plain, fused;

  // The plan with this name; empty if the name does not name an engine.
  std::optional<Plans::Wanted> wanted(std::string_view name) const {
    const auto with_prefix = [&](std::string_view prefix,
                                 const Plans::GraphPointer& graph) -> std::optional<Plans::Wanted> {
      if (!graph || !name.starts_with(prefix)) return {};
      return Plans::Wanted{graph, std::string(name.substr(prefix.size()))};
    };
    const auto found = with_prefix(engine_prefix, plain);
    return found ? found : with_prefix(fused_prefix, fused);
  }
};

bool can_fuse(bool bias, const ActivationFunction& function) {
  const bool activates = function.kind != ActivationKind::none;
  return activates ? is_pointwise(function) : bias;
}

template <std::size_t axes>
ConvolutionShapeOf<axes> shape_of(const LowerContext& context, const Conv<axes>& def) {
  return {def.window, def.groups, context.input(0).shape, context.output(0).shape, context.input(0).dtype};
}
template <std::size_t axes>
ConvolutionShapeOf<axes> shape_of(const LowerContext& context, const ConvGradInput<axes>& def) {
  return {def.window, def.groups, def.input, context.input(0).shape, context.input(0).dtype};
}
template <std::size_t axes>
ConvolutionShapeOf<axes> shape_of(const LowerContext& context, const ConvGradWeights<axes>& def) {
  return {def.window, def.groups, context.input(0).shape, context.input(1).shape, context.input(0).dtype};
}

template <std::size_t axes>
OpGraphs graphs_of(const LowerContext& context, const Conv<axes>& def) {
  const ConvolutionShapeOf<axes> shape = shape_of(context, def);
  const bool bias = context.op.inputs.size() > 2;
  OpGraphs graphs;
  graphs.plain = context.plans.graph([shape] { return convolution_graph(Convolving::forward, shape, shape.dtype); });
  if (can_fuse(bias, def.function)) {
    graphs.fused = context.plans.graph(
        [shape, bias, function = def.function] { return fused_convolution_graph(shape, bias, function); });
  }
  return graphs;
}
template <std::size_t axes>
OpGraphs graphs_of(const LowerContext& context, const ConvGradInput<axes>& def) {
  return {context.plans.graph([shape = shape_of(context, def), add = def.accumulate] {
            return convolution_graph(Convolving::input_gradient, shape, shape.dtype, add);
          }),
          nullptr};
}
template <std::size_t axes>
OpGraphs graphs_of(const LowerContext& context, const ConvGradWeights<axes>& def) {
  return {context.plans.graph([shape = shape_of(context, def)] {
            return convolution_graph(Convolving::weight_gradient, shape, shape.dtype);
          }),
          nullptr};
}

void list(const LowerContext& context, const Plans::GraphPointer& graph, std::string_view prefix, DType dtype,
          std::vector<std::string>& names) {
  if (!graph) return;
  for (const std::string& engine : list_engines(graph->graph, context.plans.target(), rules_of(context, dtype))) {
    names.push_back(std::string(prefix) + engine);
  }
}

// The plan of the candidate `name`; empty if it is not an engine of the graph.
std::optional<Plan> plan_of(const LowerContext& context, const Plans::GraphPointer& graph, std::string_view prefix,
                            const std::string& name) {
  if (!graph || !name.starts_with(prefix)) return {};
  auto plan = context.plans.get({graph, name.substr(prefix.size())});
  if (plan && plan->workspace_bytes() > EngineRules{}.max_workspace_bytes) return {};
  return plan;
}

// The candidates with the functions `names` and `make`. Their plans are made in parallel.
Candidates candidates_of(const LowerContext& context, const OpGraphs& graphs,
                         std::function<std::vector<std::string>()> names,
                         std::function<std::optional<Candidate>(const std::string&)> make) {
  const auto prepare = [&context, graphs](const std::vector<std::string>& all) {
    std::vector<Plans::Wanted> wanted;
    for (const std::string& name : all) {
      if (auto one = graphs.wanted(name)) wanted.push_back(std::move(*one));
    }
    context.plans.make_all(wanted);
  };
  return {std::move(names), std::move(make), prepare};
}

// Returns a candidate that runs a plan; the caller sets `run`.
Candidate candidate_of(const LowerContext& context, const std::string& name, std::int64_t workspace_bytes) {
  Candidate candidate;
  candidate.implementation = "cudnn " + name;
  candidate.inputs = context.logical().inputs;
  candidate.workspace_bytes = workspace_bytes;
  return candidate;
}

// Sets the layout that cuDNN needs for the kernel, which is input 1 of the forward pass and of the input's gradient.
void ask_for_kernel(const LowerContext& context, DType dtype, Candidate& candidate) {
  candidate.inputs[1] = {dtype, "ohwi", context.input(1).shape.count() * size_of(dtype)};
}

// Returns the graphs of a convolution over `axes` dimensions or of one of its gradients; no value for other ops.
template <std::size_t axes>
std::optional<OpGraphs> graphs_of_op(const LowerContext& context) {
  const OpDef* def = context.op.def.get();
  if (const auto* forward = dynamic_cast<const Conv<axes>*>(def)) return graphs_of(context, *forward);
  if (const auto* gradient = dynamic_cast<const ConvGradInput<axes>*>(def)) return graphs_of(context, *gradient);
  if (const auto* gradient = dynamic_cast<const ConvGradWeights<axes>*>(def)) return graphs_of(context, *gradient);
  return {};
}

template <std::size_t axes>
Lowering lower_forward(const LowerContext& context) {
  const auto& def = context.op.as<Conv<axes>>();
  const DType dtype = context.input(0).dtype;
  const ConvolutionShapeOf<axes> shape = shape_of(context, def);
  const bool bias = context.op.inputs.size() > 2;
  const ActivationFunction function = def.function;
  const auto dense = dense_shape(shape);
  const OpGraphs graphs = graphs_of(context, def);

  const auto names = [&] {
    std::vector<std::string> names;
    list(context, graphs.fused, fused_prefix, dtype, names);
    list(context, graphs.plain, engine_prefix, dtype, names);
    if (dense) names.push_back(product_name);
    if constexpr (axes == 2) add_few_channels_forward(shape, names);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Candidate> {
    if (name == product_name && dense) return dense_forward(context, *dense, bias, function);
    if constexpr (axes == 2) {
      if (auto candidate = few_channels_forward(context, shape, bias, function, name)) return candidate;
    }
    if (auto plan = plan_of(context, graphs.fused, fused_prefix, name)) {
      Candidate candidate = candidate_of(context, name, plan->workspace_bytes());
      ask_for_kernel(context, dtype, candidate);
      if (bias) candidate.inputs[2] = {dtype, "", shape.y.back() * size_of(dtype)};
      candidate.run = [plan = *plan, bias](const Buffers& p) mutable {
        const std::array<void*, 4> buffers{p.in<void>(0), p.in<void>(1), p.out<void>(0),
                                           bias ? p.in<void>(2) : nullptr};
        plan.run(p.stream, std::span(buffers).first(bias ? 4 : 3), p.workspace<void>());
      };
      return candidate;
    }
    auto plan = plan_of(context, graphs.plain, engine_prefix, name);
    if (!plan) return {};
    Candidate candidate = candidate_of(context, name, plan->workspace_bytes());
    ask_for_kernel(context, dtype, candidate);
    candidate.run = [plan = *plan, bias, function, shape](const Buffers& p) mutable {
      void* y = p.out<void>(0);
      plan.run(p.stream, std::array{p.in<void>(0), p.in<void>(1), y}, p.workspace<void>());
      const std::int64_t count = shape.y.count(), channels = shape.y.back();
      if (bias) {
        bias_activate(function, shape.dtype, y, p.in<float>(2), count / channels, channels, p.stream);
      } else if (function.kind != ActivationKind::none) {
        activate(function, shape.dtype, y, count, p.stream);
      }
    };
    return candidate;
  };
  return lower_fastest(context, candidates_of(context, graphs, names, make));
}

template <std::size_t axes>
Lowering lower_grad_input(const LowerContext& context) {
  const auto& def = context.op.as<ConvGradInput<axes>>();
  const DType dtype = context.input(0).dtype;
  const ConvolutionShapeOf<axes> shape = shape_of(context, def);
  const auto dense = dense_shape(shape);
  const OpGraphs graphs = graphs_of(context, def);

  const auto names = [&] {
    std::vector<std::string> names;
    list(context, graphs.plain, engine_prefix, dtype, names);
    if (dense) names.push_back(product_name);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Candidate> {
    if (name == product_name && dense) return dense_input_gradient(context, *dense, def.accumulate);
    auto plan = plan_of(context, graphs.plain, engine_prefix, name);
    if (!plan) return {};
    Candidate candidate = candidate_of(context, name, plan->workspace_bytes());
    ask_for_kernel(context, dtype, candidate);
    candidate.run = [plan = *plan, add = def.accumulate, bytes = context.output(0).bytes()](const Buffers& p) mutable {
      if (add) copy_unless_in_place(p, 2, bytes);
      plan.run(p.stream, std::array{p.out<void>(0), p.in<void>(1), p.in<void>(0)}, p.workspace<void>());
    };
    return candidate;
  };
  return lower_fastest(context, candidates_of(context, graphs, names, make));
}

// cuDNN's engines write the gradient of the kernel as [out, height, width, in / groups], in the dtype of x and dy, into
// the workspace; from there it is transposed into (or added to) the logical float32 gradient.
template <std::size_t axes>
Lowering lower_grad_weights(const LowerContext& context) {
  const auto& def = context.op.as<ConvGradWeights<axes>>();
  const DType dtype = context.input(0).dtype;
  const ConvolutionShapeOf<axes> shape = shape_of(context, def);
  const auto dense = dense_shape(shape);
  const OpGraphs graphs = graphs_of(context, def);
  const std::int64_t channels = shape.y.back();
  std::optional<ColumnSums> sums;
  if (def.bias) sums.emplace(dtype, shape.y.count() / channels, channels);
  const std::int64_t kernel_count = shape.kernel().count();
  const std::int64_t kernel_bytes =
      (kernel_count * size_of(dtype) + range_alignment - 1) / range_alignment * range_alignment;

  const auto names = [&] {
    std::vector<std::string> names;
    list(context, graphs.plain, engine_prefix, dtype, names);
    if (dense) add_gradient_products(context, *dense, def.bias, def.accumulate, names);
    if constexpr (axes == 2) add_few_channels_gradient(shape, names);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Candidate> {
    if (dense) {
      if (auto candidate = dense_weight_gradient(context, *dense, def.bias, def.accumulate, name)) return candidate;
    }
    if constexpr (axes == 2) {
      if (auto candidate = few_channels_gradient(context, shape, def.accumulate, name)) {
        if (!sums) return candidate;
        candidate->workspace_bytes = std::max(candidate->workspace_bytes, sums->workspace_bytes());
        candidate->run = [=, gradient = candidate->run, add = def.accumulate](const Buffers& p) {
          gradient(p);
          sums->run(p.in<void>(1), add, p.out<float>(1), p.workspace<void>(), p.stream);
        };
        return candidate;
      }
    }
    auto plan = plan_of(context, graphs.plain, engine_prefix, name);
    if (!plan) return {};
    const std::int64_t rest = std::max(plan->workspace_bytes(), sums ? sums->workspace_bytes() : 0);
    Candidate candidate = candidate_of(context, name, kernel_bytes + rest);
    candidate.run = [=, plan = *plan, add = def.accumulate](const Buffers& p) mutable {
      void *dkernel = p.workspace<void>(), *scratch = p.workspace<void>(kernel_bytes);
      plan.run(p.stream, std::array{p.in<void>(0), dkernel, p.in<void>(1)}, scratch);
      transpose(dtype, dkernel, channels, kernel_count / channels, DType::float32, p.out<void>(0), add, p.stream);
      if (sums) sums->run(p.in<void>(1), add, p.out<float>(1), scratch, p.stream);
    };
    return candidate;
  };
  return lower_fastest(context, candidates_of(context, graphs, names, make));
}

}  // namespace

std::optional<Plans::Wanted> recorded_plan(const LowerContext& context) {
  const auto recorded = context.choices.find(choice_key(context));
  if (!recorded) return {};
  auto graphs = graphs_of_op<2>(context);
  if (!graphs) graphs = graphs_of_op<3>(context);
  return graphs ? graphs->wanted(*recorded) : std::nullopt;
}

Lowering lower_conv2d(const LowerContext& context) { return lower_forward<2>(context); }
Lowering lower_conv3d(const LowerContext& context) { return lower_forward<3>(context); }
Lowering lower_conv2d_grad_input(const LowerContext& context) { return lower_grad_input<2>(context); }
Lowering lower_conv3d_grad_input(const LowerContext& context) { return lower_grad_input<3>(context); }
Lowering lower_conv2d_grad_weights(const LowerContext& context) { return lower_grad_weights<2>(context); }
Lowering lower_conv3d_grad_weights(const LowerContext& context) { return lower_grad_weights<3>(context); }

}  // namespace trainctl::cuda
