// Writes the numbers 0, 1, 2, ... A thread writes one number.
#include "core/graph/ops/arange.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

__global__ void write_numbers(std::int64_t count, float* y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) y[i] = static_cast<float>(i);
}

}  // namespace

Lowering lower_arange(const LowerContext& context) {
  return own_kernel(context, [count = context.op.as<Arange>().count](const Buffers& p) {
    launch(write_numbers, blocks_for(count), block_threads, p.stream, count, p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
