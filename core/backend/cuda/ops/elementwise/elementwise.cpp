// Programs of elementwise functions, each of which has its own kernel, compiled when the op is lowered.
#include "core/graph/ops/elementwise/elementwise.h"

#include <algorithm>

#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/runtime_compiled/kernel.h"
#include "core/backend/cuda/runtime_compiled/source.h"

namespace trainctl::cuda {
namespace {

constexpr std::size_t most_tensors = 500;      // whose addresses fit into a kernel's argument of 4 KB
constexpr std::int64_t most_blocks = 1 << 14;  // several waves on any GPU

ElementwiseSource source_of(const LowerContext& context) {
  const auto& def = context.op.as<Elementwise>();
  std::vector<TensorType> types;
  ElementwiseKernelSpec spec{def.program, {}, {}, def.dtypes};
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) {
    types.push_back(context.input(i));
    spec.inputs.push_back(types.back().dtype);
  }
  spec.view = broadcast_view(types, context.output(0).shape);
  return elementwise_source(spec);
}

}  // namespace

Lowering lower_elementwise(const LowerContext& context) {
  const std::size_t inputs = context.op.inputs.size(), outputs = context.op.outputs.size();
  require(inputs + outputs <= most_tensors, "elementwise: the program has too many inputs and results");
  const ElementwiseSource source = source_of(context);
  const CompiledKernel kernel = compiled_kernel(source.text, elementwise_kernel_name, context.device.capability());
  const std::int64_t wanted = (source.packs + elementwise_kernel_threads - 1) / elementwise_kernel_threads;
  const auto blocks = static_cast<unsigned>(std::min(wanted, most_blocks));
  return own_kernel(context, [=](const Buffers& p) {
    std::vector<void*> addresses;
    for (std::size_t i = 0; i < inputs; ++i) addresses.push_back(const_cast<void*>(p.in<void>(i)));
    if (inputs == 0) addresses.push_back(nullptr);
    for (std::size_t r = 0; r < outputs; ++r) addresses.push_back(p.out<void>(r));
    kernel.launch(blocks, elementwise_kernel_threads, p.stream, addresses);
  });
}

}  // namespace trainctl::cuda
