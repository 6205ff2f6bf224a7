// Gives a tensor in GPU memory its earlier values if the step is skipped.
#include "core/graph/ops/training/restore.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cuda {
namespace {

__global__ void restore(const float* x, const float* flags, const float* norm, float* y, std::int64_t count) {
  if (flags[agree_not_finite] == 0 && isfinite(*norm)) return;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) y[i] = x[i];
}

}  // namespace

Lowering lower_restore(const LowerContext& context) {
  return own_kernel(context, [count = context.output(0).shape.count()](const Buffers& p) {
    launch(restore, blocks_for(count), block_threads, p.stream, p.in<float>(0), p.in<float>(1), p.in<float>(2),
           p.out<float>(0), count);
  });
}

}  // namespace trainctl::cuda
