// Ops that move values without computing: concatenation and split along the last dimension, casts and changes of
// layout.
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/whole_batch.h"

#include <cstring>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn/blocked_copy.h"
#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/graph/ops/reshaping/columns.h"

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
                        [count](const Buffers& buffers) { convert(buffers.in<From>(0), buffers.out<To>(0), count); });
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
    append_scratch(desc, b.workspace, list);
    return list;
  }
  void compute(const Slot& slot) override { call_.run(slot); }

  PrimitiveCall call_;
};

// Returns the descriptor of a layout. The descriptor of a logical layout takes its dimensions from `other`, the layout
// on the other side of the reorder.
onednn::memory::desc descriptor(const OneDnn& dnnl, const Layout& layout, const Layout& other) {
  return layout.format.empty() ? dnnl.find(other.format).logical(layout.dtype) : dnnl.find(layout.format).desc;
}

}  // namespace

namespace {

// Copies, row by row, between a wide tensor and its column ranges, which are tensors of their own.
class Columns {
 public:
  Columns(const TensorType& wide, std::vector<std::int64_t> range_widths)
      : rows_(wide.shape.count() / wide.shape.back()) {
    for (std::int64_t width : range_widths) widths_.push_back(width * size_of(wide.dtype));
    row_bytes_ = wide.shape.back() * size_of(wide.dtype);
  }

  // Copies between the wide tensor and the range that begins column_bytes after the start of a row. Returns the offset
  // of the next range in bytes.
  std::int64_t copy(std::size_t range, std::int64_t column_bytes, std::byte* wide, std::byte* narrow,
                    bool to_wide) const {
    const std::int64_t width = widths_[range], row_bytes = row_bytes_;
    parallel_ranges(rows_, std::max<std::int64_t>(1, 4 * element_grain / width),
                    [=](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t row = begin; row < end; ++row) {
                        std::byte* left = wide + row * row_bytes + column_bytes;
                        std::byte* right = narrow + row * width;
                        std::memcpy(to_wide ? left : right, to_wide ? right : left, static_cast<std::size_t>(width));
                      }
                    });
    return column_bytes + width;
  }

 private:
  std::int64_t rows_;
  std::vector<std::int64_t> widths_;  // bytes
  std::int64_t row_bytes_ = 0;
};

}  // namespace

Lowering lower_concatenate(const LowerContext& context) {
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) widths.push_back(context.input(i).shape.back());
  const Columns columns(context.output(0), widths);
  return own_kernel(context, [columns, count = widths.size()](const Buffers& buffers) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
      offset = columns.copy(i, offset, buffers.out<std::byte>(0), buffers.in<std::byte>(i), true);
    }
  });
}

Lowering lower_split(const LowerContext& context) {
  const std::vector<std::int64_t>& widths = context.op.as<Split>().sizes;
  const Columns columns(context.input(0), widths);
  return own_kernel(context, [columns, count = widths.size()](const Buffers& buffers) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
      offset = columns.copy(i, offset, buffers.in<std::byte>(0), buffers.out<std::byte>(i), false);
    }
  });
}

Lowering lower_take_columns(const LowerContext& context) {
  const TensorType& y = context.output(0);
  const std::int64_t width = y.shape.back();
  const Columns columns(context.input(0), {width});
  const std::int64_t first =
      context.op.as<TakeColumns>().shard.first_of(context.input(0).shape.back()) * size_of(y.dtype);
  return own_kernel(context, [columns, first](const Buffers& buffers) {
    columns.copy(0, first, buffers.in<std::byte>(0), buffers.out<std::byte>(0), false);
  });
}

Lowering lower_take_samples(const LowerContext& context) {
  const SampleShares& shares = context.op.as<TakeSamples>().shares;
  const TensorType& y = context.output(0);
  const std::int64_t first = shares.first_of(shares.own) * (y.bytes() / y.shape[0]);
  return own_kernel(context, [first, bytes = y.bytes()](const Buffers& buffers) {
    std::memcpy(buffers.out<std::byte>(0), buffers.in<std::byte>(0) + first, static_cast<std::size_t>(bytes));
  });
}

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
  if (const auto copy = BlockedCopy::between(source, target)) {
    Lowering lowering = own_kernel(
        context, [copy = *copy](const Buffers& buffers) { copy.run(buffers.in<float>(0), buffers.out<float>(0)); });
    lowering.inputs = {from};
    lowering.outputs = {to};
    return lowering;
  }
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
