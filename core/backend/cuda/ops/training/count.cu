// Counts the samples of a micro-batch.
#include "core/graph/ops/training/count.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/tensor/sample_numbers.h"

namespace trainctl::cuda {
namespace {

__device__ double counted(std::int64_t number) { return number >= 0 ? 1.0 : 0.0; }
__device__ double counted(float weight) { return weight; }

// Runs on one block.
template <class T>
__global__ void add_counted(const T* values, std::int64_t size, bool add, float* count) {
  __shared__ double shared[32];
  double own = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) own += counted(values[i]);
  own = block_sum(own, shared);
  if (threadIdx.x == 0) *count = static_cast<float>(add ? *count + own : own);
}

}  // namespace

Lowering lower_count(const LowerContext& context) {
  const bool add = context.op.as<Count>().accumulate, numbers = context.input(0).dtype == DType::int64;
  const std::int64_t size = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    if (numbers) {
      launch(add_counted<std::int64_t>, 1, block_threads, p.stream, p.in<std::int64_t>(0), size, add, p.out<float>(0));
    } else {
      launch(add_counted<float>, 1, block_threads, p.stream, p.in<float>(0), size, add, p.out<float>(0));
    }
  });
}

}  // namespace trainctl::cuda
