// Convolutions, forward and backward, on oneDNN's direct convolutions over plain NHWC images, or NDHWC volumes, or on
// kernels of this project where they are faster.
//
// Images stay NHWC: oneDNN's convolutions are as fast on NHWC as on blocked layouts (and use AMX in bfloat16), and no
// tensor needs reordering between ops. Convolution kernels get the layout of the chosen implementation, in a compute
// copy.
#include <algorithm>
#include <optional>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn/blocked_copy.h"
#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/ops/images/own_convolution.h"
#include "core/backend/cpu/ops/images/own_weight_gradient.h"
#include "core/backend/cpu/simd/column_sums.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl::cpu {
namespace {

using onednn::memory;

onednn::Dims without_gaps(onednn::Dims dilation) {
  for (std::int64_t& distance : dilation) --distance;
  return dilation;
}

template <std::size_t axes>
onednn::Dims dims_of(const std::array<std::int64_t, axes>& sizes) {
  return onednn::Dims(sizes.begin(), sizes.end());
}

// A convolution in oneDNN's terms: images are (N, C, H, W), kernels (O, I, H, W) or (G, O, I, H, W); for volumes D
// precedes H.
struct Convolution {
  onednn::ConvolutionShape shape;
  memory::desc x, y, bias;
  onednn::Dims kernel, logical_strides;

  template <std::size_t axes>
  Convolution(const WindowOf<axes>& w, std::int64_t groups, const Shape& x_shape, const Shape& y_shape, DType dtype)
      : shape{dims_of(w.strides), without_gaps(dims_of(w.dilation)), dims_of(w.padding_before),
              dims_of(w.padding_after)},
        x(image(x_shape, dtype)),
        y(image(y_shape, dtype)) {
    const std::int64_t in = x_shape.back() / groups, out = y_shape.back();
    bias = memory::desc({out}, memory::data_type::f32, memory::format_tag::a);
    kernel = {out / groups, in};
    kernel.insert(kernel.end(), w.size.begin(), w.size.end());
    logical_strides = onednn::Dims(kernel.size());
    logical_strides[0] = 1;
    logical_strides[1] = out;
    std::int64_t stride = in * out;
    for (std::size_t axis = axes; axis-- > 0; stride *= w.size[axis]) logical_strides[2 + axis] = stride;
    if (groups > 1) {
      kernel.insert(kernel.begin(), groups);
      logical_strides.insert(logical_strides.begin(), out / groups);
    }
  }
  memory::desc any_kernel(DType dtype) const { return {kernel, dnnl_type(dtype), memory::format_tag::any}; }

 private:
  static memory::desc image(const Shape& s, DType dtype) {
    const auto rank = static_cast<std::size_t>(s.rank());
    onednn::Dims dims = s.sizes(), strides(rank);
    std::int64_t stride = s.back();
    for (std::size_t axis = rank - 1; axis-- > 0; stride *= dims[axis]) strides[axis] = stride;
    strides[rank - 1] = 1;
    std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
    std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
    return {dims, dnnl_type(dtype), strides};
  }
};

// Without timing the implementation with the lowest rank is chosen; among equal ranks, the first that oneDNN offers.
// oneDNN's batched small products (brgconv) rank after its direct convolutions unless they use AMX. On a processor with
// AVX-512 and without AMX both take about the same time for most shapes of common networks, but for few channels or
// pixels the products take 1.4 to 4 times as long.
template <class Desc>
int rank_by_rule(const Desc& desc) {
  const std::string_view name = desc.impl_info_str();
  return name.starts_with("brg") && !uses_amx(name) ? 1 : 0;
}

// Chooses among the implementations that oneDNN offers: the recorded implementation, otherwise the fastest or, without
// timing, the implementation that rank_by_rule() puts first. Reference implementations are chosen only if there are no
// other implementations. operands(desc) returns the arguments of a call without scratch memory. `*seconds` is set to
// the time of the chosen implementation if it was timed.
template <class Primitive, class Desc, class Operands>
Desc choose(const LowerContext& context, const std::vector<Desc>& offered, const Operands& operands,
            double* seconds = nullptr) {
  constexpr std::size_t max_candidates = 3;
  const std::string key = context.key();
  const auto recorded = context.choices.find(key);
  std::vector<Desc> candidates;
  for (const Desc& desc : offered) {
    const std::string name = desc.impl_info_str();
    if (recorded && name == *recorded) return desc;
    const bool known = std::any_of(candidates.begin(), candidates.end(),
                                   [&](const Desc& other) { return name == other.impl_info_str(); });
    const bool reference = name.find("ref") != std::string::npos;
    if (candidates.size() < max_candidates && !known && (!reference || candidates.empty())) candidates.push_back(desc);
  }

  std::size_t best = 0;
  if (candidates.size() > 1 || seconds) {
    if (!context.may_time(key)) {
      const Desc& chosen = *std::ranges::min_element(candidates, {}, &rank_by_rule<Desc>);
      context.settle(key, chosen.impl_info_str());
      return chosen;
    }
    double fastest = 1e30;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      std::vector<Operand> list = operands(candidates[i]);
      append_scratch(candidates[i], {}, list);
      const double time = measure(context.dnnl, Primitive(candidates[i]), list, fastest);
      if (time < fastest) {
        fastest = time;
        best = i;
      }
    }
    if (seconds) *seconds = fastest;
  }
  context.choices.record(key, candidates[best].impl_info_str());
  return candidates[best];
}

template <class Desc>
std::int64_t scratch_bytes(const Desc& desc) {
  return static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
}

class PrimitiveKernel final : public CpuKernel {
 public:
  explicit PrimitiveKernel(PrimitiveCall call) : call_(std::move(call)) {}

 private:
  void compute(const Slot& slot) override { call_.run(slot); }

  PrimitiveCall call_;
};

// Completes a lowering to one primitive. Its arguments are operands(desc, binding).
template <class Primitive, class Desc, class Operands>
void lower_to(const LowerContext& context, const Desc& desc, const Operands& operands, Lowering& lowering) {
  lowering.workspace_bytes = scratch_bytes(desc);
  lowering.implementation = std::string("conv:") + desc.impl_info_str();
  lowering.bind = [&dnnl = context.dnnl, desc, operands](const Binding& b) -> std::unique_ptr<Kernel> {
    std::vector<Operand> list = operands(desc, b);
    append_scratch(desc, b.workspace, list);
    return std::make_unique<PrimitiveKernel>(PrimitiveCall(dnnl, Primitive(desc), list));
  };
}

// A binding without addresses, for timing; measure() fills them in.
Binding empty_binding(std::size_t inputs, std::size_t outputs) {
  return {std::vector<Address>(inputs), std::vector<Address>(outputs), {}};
}

// The descriptor of the forward pass, which oneDNN needs as a hint for the descriptors of the backward pass.
dnnl::convolution_forward::primitive_desc forward_hint(const LowerContext& context, const Convolution& g, DType dtype) {
  return onednn::convolution(context.dnnl.engine(), g.shape, g.x, g.any_kernel(dtype), memory::desc(), g.y,
                             attributes())
      .front();
}

template <std::size_t axes>
Lowering lower_forward(const LowerContext& context) {
  const auto& def = context.op.as<Conv<axes>>();
  const DType dtype = context.input(0).dtype;
  const std::vector<OwnKernel> own = own_convolutions(context);
  const auto recorded = context.choices.find(context.key());
  if (const OwnKernel* kernel = find_own(own, recorded)) return kernel->lower();

  const Convolution g(def.window, def.groups, context.input(0).shape, context.output(0).shape, dtype);
  const bool has_bias = context.op.inputs.size() > 2;
  const auto operands = [g, has_bias](const auto& desc, const Binding& b) {
    std::vector<Operand> list{{DNNL_ARG_SRC, g.x, b.inputs[0]},
                              {DNNL_ARG_WEIGHTS, desc.weights_desc(), b.inputs[1]},
                              {DNNL_ARG_DST, g.y, b.outputs[0]}};
    if (has_bias) list.push_back({DNNL_ARG_BIAS, g.bias, b.inputs[2]});
    return list;
  };
  auto offered = onednn::convolution(context.dnnl.engine(), g.shape, g.x, g.any_kernel(dtype),
                                     has_bias ? g.bias : memory::desc(), g.y, attributes(false, def.function));
  // With a fused sigmoid, oneDNN 2.6's convolution by matrix products (gemm) turns NaN into numbers, so that the loss
  // would not become NaN.
  if (def.function.kind == ActivationKind::sigmoid) {
    const auto uses_gemm = [](const auto& desc) {
      return std::string_view(desc.impl_info_str()).find("gemm") != std::string_view::npos;
    };
    if (!std::all_of(offered.begin(), offered.end(), uses_gemm)) std::erase_if(offered, uses_gemm);
  }
  double seconds = 0;
  const auto desc = choose<dnnl::convolution_forward>(
      context, offered, [&](const auto& candidate) { return operands(candidate, empty_binding(3, 1)); },
      own.empty() ? nullptr : &seconds);
  if (!recorded) {
    if (const OwnKernel* kernel = choose_own(context, own, {desc.impl_info_str(), seconds})) return kernel->lower();
  }
  Lowering lowering = context.logical();
  lowering.inputs[1] = context.dnnl.layout({desc.weights_desc(), g.logical_strides});
  lower_to<dnnl::convolution_forward>(context, desc, operands, lowering);
  return lowering;
}

template <std::size_t axes>
Lowering lower_grad_input(const LowerContext& context) {
  const auto& def = context.op.as<ConvGradInput<axes>>();
  require(!def.accumulate, "the CPU backend cannot add the gradient to another gradient");
  const DType dtype = context.input(0).dtype;
  const std::vector<OwnKernel> own = own_convolutions(context);
  const auto recorded = context.choices.find(context.key());
  if (const OwnKernel* kernel = find_own(own, recorded)) return kernel->lower();

  const Convolution g(def.window, def.groups, def.input, context.input(0).shape, dtype);
  const auto operands = [g](const auto& desc, const Binding& b) {
    return std::vector<Operand>{{DNNL_ARG_DIFF_DST, g.y, b.inputs[0]},
                                {DNNL_ARG_WEIGHTS, desc.weights_desc(), b.inputs[1]},
                                {DNNL_ARG_DIFF_SRC, g.x, b.outputs[0]}};
  };
  const auto hint = forward_hint(context, g, dtype);
  const auto offered =
      onednn::convolution_data(context.dnnl.engine(), g.shape, g.x, g.any_kernel(dtype), g.y, hint, attributes());
  double seconds = 0;
  const auto desc = choose<dnnl::convolution_backward_data>(
      context, offered, [&](const auto& candidate) { return operands(candidate, empty_binding(2, 1)); },
      own.empty() ? nullptr : &seconds);
  if (!recorded) {
    if (const OwnKernel* kernel = choose_own(context, own, {desc.impl_info_str(), seconds})) return kernel->lower();
  }
  Lowering lowering = context.logical();
  lowering.inputs[1] = context.dnnl.layout({desc.weights_desc(), g.logical_strides});
  lower_to<dnnl::convolution_backward_data>(context, desc, operands, lowering);
  return lowering;
}

// Returns the implementations that oneDNN offers for the gradient of the kernel, without jit_1x1 for shapes for which
// it writes out of bounds. In float32 jit_1x1, the 1x1 convolution with strides, first gathers the pixels of x that it
// uses into scratch memory with space for C channels each, but writes a whole vector per pixel. If C is less than the
// vector's length (8 or 16), oneDNN 2.6 writes past the end of that memory, further for larger images. With several
// threads, each thread writes into the memory of the next thread.
std::vector<dnnl::convolution_backward_weights::primitive_desc> weight_gradients(const LowerContext& context,
                                                                                 const Convolution& g, DType dtype) {
  const auto hint = forward_hint(context, g, dtype);
  auto offered = onednn::convolution_weights(context.dnnl.engine(), g.shape, g.x, g.any_kernel(DType::float32), g.y,
                                             hint, attributes());
  const std::int64_t in = g.kernel[g.kernel.size() - 1 - g.shape.strides.size()];
  if (in < 16 && std::ranges::any_of(g.shape.strides, [](std::int64_t stride) { return stride > 1; })) {
    std::erase_if(offered, [](const auto& desc) { return std::string(desc.impl_info_str()).starts_with("jit_1x1"); });
  }
  return offered;
}

// Estimates the seconds in which a gradient is copied from a layout of oneDNN to the logical layout, which this
// project's kernels write at once.
double copy_seconds(const memory::desc& gradient) {
  constexpr double bytes_per_second = 20e9;  // assumed, for reads and writes together
  return 2 * static_cast<double>(gradient.get_size()) / bytes_per_second;
}

// oneDNN's implementation writes the gradient of the kernel to scratch memory in its own layout; a copy then writes it
// to (or adds it to) the logical gradient.
template <std::size_t axes>
Lowering lower_grad_weights(const LowerContext& context) {
  const auto& def = context.op.as<ConvGradWeights<axes>>();
  const DType dtype = context.input(0).dtype;
  const Shape& dy = context.input(1).shape;
  const Convolution g(def.window, def.groups, context.input(0).shape, dy, dtype);
  const std::vector<OwnKernel> own = own_weight_gradients(context);
  const auto recorded = context.choices.find(context.key());
  if (const OwnKernel* kernel = find_own(own, recorded)) return kernel->lower();

  const dnnl::engine& engine = context.dnnl.engine();
  const auto offered = weight_gradients(context, g, dtype);
  const auto operands = [&](const auto& candidate) {
    return std::vector<Operand>{{DNNL_ARG_SRC, g.x, {}},
                                {DNNL_ARG_DIFF_DST, g.y, {}},
                                {DNNL_ARG_DIFF_WEIGHTS, candidate.diff_weights_desc(), {}}};
  };
  double seconds = 0;
  const auto desc =
      choose<dnnl::convolution_backward_weights>(context, offered, operands, own.empty() ? nullptr : &seconds);
  const memory::desc physical = desc.diff_weights_desc();
  const memory::desc logical(g.kernel, memory::data_type::f32, g.logical_strides);
  const bool direct = physical == logical && !def.accumulate;
  if (!recorded) {
    if (seconds > 0 && !direct) seconds += copy_seconds(physical);
    if (const OwnKernel* kernel = choose_own(context, own, {desc.impl_info_str(), seconds})) return kernel->lower();
  }
  const std::optional<BlockedCopy> copy = direct ? std::nullopt : BlockedCopy::between(physical, logical);
  std::optional<dnnl::reorder::primitive_desc> reorder;
  if (!direct && !copy) reorder.emplace(engine, physical, engine, logical, attributes(def.accumulate));

  // The workspace holds the gradient in the physical layout, then the scratch memory that the convolution, the reorder
  // and the bias gradient use one after the other.
  constexpr std::int64_t alignment = 64;
  const auto physical_bytes = static_cast<std::int64_t>(physical.get_size());
  const std::int64_t scratch = direct ? 0 : (physical_bytes + alignment - 1) / alignment * alignment;
  const std::int64_t rows = dy.rows(), channels = dy.back();
  Lowering lowering = context.logical();
  lowering.implementation = std::string("conv:") + desc.impl_info_str();
  lowering.workspace_bytes = scratch + std::max({scratch_bytes(desc), reorder ? scratch_bytes(*reorder) : 0,
                                                 def.bias ? column_sums_workspace(rows, channels) : 0});
  lowering.bind = [&dnnl = context.dnnl, desc, copy, reorder, physical, logical, g, direct, scratch, dtype, rows,
                   channels, bias = def.bias, add = def.accumulate](const Binding& b) -> std::unique_ptr<Kernel> {
    const Address shared = b.workspace + scratch;
    const Address result = direct ? b.outputs[0] : b.workspace;
    std::vector<Operand> operands{{DNNL_ARG_SRC, g.x, b.inputs[0]},
                                  {DNNL_ARG_DIFF_DST, g.y, b.inputs[1]},
                                  {DNNL_ARG_DIFF_WEIGHTS, physical, result}};
    append_scratch(desc, shared, operands);
    PrimitiveCall convolution(dnnl, dnnl::convolution_backward_weights(desc), operands);
    std::optional<PrimitiveCall> to_logical;
    if (reorder) {
      std::vector<Operand> sides{{DNNL_ARG_FROM, physical, b.workspace}, {DNNL_ARG_TO, logical, b.outputs[0]}};
      append_scratch(*reorder, shared, sides);
      to_logical.emplace(dnnl, dnnl::reorder(*reorder), sides);
    }
    auto body = [convolution = std::move(convolution), copy, to_logical = std::move(to_logical), scratch, dtype, rows,
                 channels, bias, add](const Buffers& buffers) mutable {
      convolution.run(buffers.slot);
      if (copy) copy->run(buffers.workspace<float>(), buffers.out<float>(0), add);
      if (to_logical) to_logical->run(buffers.slot);
      if (!bias) return;
      column_sums(dtype, buffers.in<void>(1), rows, channels, add, buffers.out<float>(1),
                  buffers.workspace<void>(scratch));
    };
    return std::make_unique<FunctionKernel<decltype(body)>>(b, std::move(body));
  };
  return lowering;
}

}  // namespace

Lowering lower_conv2d(const LowerContext& context) { return lower_forward<2>(context); }
Lowering lower_conv3d(const LowerContext& context) { return lower_forward<3>(context); }
Lowering lower_conv2d_grad_input(const LowerContext& context) { return lower_grad_input<2>(context); }
Lowering lower_conv3d_grad_input(const LowerContext& context) { return lower_grad_input<3>(context); }
Lowering lower_conv2d_grad_weights(const LowerContext& context) { return lower_grad_weights<2>(context); }
Lowering lower_conv3d_grad_weights(const LowerContext& context) { return lower_grad_weights<3>(context); }

}  // namespace trainctl::cpu
