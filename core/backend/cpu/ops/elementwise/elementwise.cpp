// Programs of elementwise functions: the threads share the blocks of the outputs.
#include "core/graph/ops/elementwise/elementwise.h"

#include <omp.h>

#include <array>
#include <memory>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/elementwise/elementwise_kernel.h"

namespace trainctl::cpu {

Lowering lower_elementwise(const LowerContext& context) {
  const auto& def = context.op.as<Elementwise>();
  std::vector<TensorType> inputs;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) inputs.push_back(context.input(i));
  const auto kernel = std::make_shared<const ElementwiseKernel>(def, inputs, context.output(0).shape);
  return own_kernel(
      context,
      [kernel, input_count = inputs.size(), output_count = def.dtypes.size()](const Buffers& buffers) {
        std::array<const void*, ElementwiseKernel::most_values> from;
        std::array<void*, ElementwiseKernel::most_values> to;
        for (std::size_t i = 0; i < input_count; ++i) from[i] = buffers.in<void>(i);
        for (std::size_t r = 0; r < output_count; ++r) to[r] = buffers.out<void>(r);
        auto* workspace = buffers.workspace<float>();
        parallel_ranges(
            kernel->blocks(), element_grain / ElementwiseKernel::block, [&](std::int64_t begin, std::int64_t end) {
              kernel->run(from.data(), to.data(), begin, end, workspace + omp_get_thread_num() * kernel->workspace());
            });
      },
      context.threads * kernel->workspace() * static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace trainctl::cpu
