// Ops that move values without computing: casts and changes of layout.
#include "core/graph/ops/shaping.h"

#include <cstring>

#include "core/backend/cpu/dnnl_kernel.h"
#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/activations.h"

namespace trainctl::cpu {
namespace {

template <class From, class To>
void convert(const From* from, To* to, std::int64_t count) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] = store<To>(load(from[i]));
    });
  });
}

// Converts between float32 and bfloat16 in row-major order.
Lowering lower_conversion(const LowerContext& context, DType from, DType to) {
  const std::int64_t count = context.input(0).shape.count();
  return with_type(from, [&](auto source) {
    return with_type(to, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      return own_kernel(context,
                        [count](const Places& places) { convert(places.in<From>(0), places.out<To>(0), count); });
    });
  });
}

// A reorder of oneDNN between two descriptors.
class ReorderKernel final : public CpuKernel {
 public:
  ReorderKernel(const OneDnn& dnnl, const dnnl::reorder::primitive_desc& desc, const onednn::memory::desc& from,
                const onednn::memory::desc& to, const Binding& b)
      : call_(dnnl, dnnl::reorder(desc), operands(desc, from, to, b)) {}

 private:
  static std::vector<Operand> operands(const dnnl::reorder::primitive_desc& desc, const onednn::memory::desc& from,
                                       const onednn::memory::desc& to, const Binding& b) {
    std::vector<Operand> list{{DNNL_ARG_FROM, from, b.inputs[0]}, {DNNL_ARG_TO, to, b.outputs[0]}};
    if (desc.scratchpad_desc().get_size() > 0)
      list.push_back({DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(), b.workspace});
    return list;
  }
  void compute(const Slot& slot) override { call_.run(slot); }

  PrimitiveCall call_;
};

// The descriptor of a layout; where it is the logical one, in the dimensions of the other side's.
onednn::memory::desc descriptor(const OneDnn& dnnl, const Layout& layout, const Layout& other) {
  return layout.format.empty() ? dnnl.find(other.format).logical(layout.dtype) : dnnl.find(layout.format).desc;
}

}  // namespace

Lowering lower_cast(const LowerContext& context) {
  return lower_conversion(context, context.input(0).dtype, context.op.as<Cast>().to);
}

Lowering lower_reorder(const LowerContext& context) {
  const Layout& from = context.inputs[0];
  const Layout& to = context.op.as<Reorder>().to;
  if (from.format.empty() && to.format.empty()) {
    Lowering lowering = lower_conversion(context, from.dtype, to.dtype);
    lowering.outputs[0] = to;
    return lowering;
  }
  const onednn::memory::desc source = descriptor(context.dnnl, from, to);
  const onednn::memory::desc target = descriptor(context.dnnl, to, from);
  const dnnl::engine& engine = context.dnnl.engine();
  const dnnl::reorder::primitive_desc desc(engine, source, engine, target, attributes());
  Lowering lowering;
  lowering.inputs = {from};
  lowering.outputs = {to};
  lowering.workspace_bytes = static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
  lowering.implementation = std::string("reorder:") + desc.impl_info_str();
  lowering.bind = [&dnnl = context.dnnl, desc, source, target](const Binding& b) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReorderKernel>(dnnl, desc, source, target, b);
  };
  return lowering;
}

}  // namespace trainctl::cpu
