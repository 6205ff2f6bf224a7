// Products of two activations by oneDNN's matrix multiplication, with the first dimensions as its batch.
#include "core/graph/ops/matmul.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn/dnnl_kernel.h"

namespace trainctl::cpu {
namespace {

using onednn::memory;

// A batch of matrices [rows, columns] whose memory is row-major, or column-major if it is transposed.
memory::desc matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed, DType dtype) {
  const onednn::Dims strides =
      transposed ? onednn::Dims{rows * columns, 1, rows} : onednn::Dims{rows * columns, columns, 1};
  return memory::desc({batch, rows, columns}, dnnl_type(dtype), strides);
}

class MatmulKernel final : public CpuKernel {
 public:
  MatmulKernel(const OneDnn& dnnl, const dnnl::matmul::primitive_desc& desc, const std::vector<Operand>& operands)
      : call_(dnnl, dnnl::matmul(desc), operands) {}

 private:
  void compute(const Slot& slot) override { call_.run(slot); }

  PrimitiveCall call_;
};

}  // namespace

Lowering lower_matmul(const LowerContext& context) {
  const auto& def = context.op.as<Matmul>();
  const MatmulSizes s(def, context.input(0).shape, context.input(1).shape);
  const DType dtype = context.input(0).dtype;
  const memory::desc a = matrices(s.batch, s.rows, s.inner, def.transpose_a, dtype);
  const memory::desc b = matrices(s.batch, s.inner, s.columns, def.transpose_b, dtype);
  const memory::desc y = matrices(s.batch, s.rows, s.columns, false, dtype);
  const auto desc = onednn::matmul(context.dnnl.engine(), a, b, memory::desc(), y, attributes());
  Lowering lowering = context.logical();
  lowering.workspace_bytes = static_cast<std::int64_t>(desc.scratchpad_desc().get_size());
  lowering.implementation = std::string("matmul:") + desc.impl_info_str();
  lowering.bind = [&dnnl = context.dnnl, desc, a, b, y](const Binding& binding) -> std::unique_ptr<Kernel> {
    std::vector<Operand> operands{{DNNL_ARG_SRC, a, binding.inputs[0]},
                                  {DNNL_ARG_WEIGHTS, b, binding.inputs[1]},
                                  {DNNL_ARG_DST, y, binding.outputs[0]}};
    append_scratch(desc, binding.workspace, operands);
    return std::make_unique<MatmulKernel>(dnnl, desc, operands);
  };
  return lowering;
}

}  // namespace trainctl::cpu
