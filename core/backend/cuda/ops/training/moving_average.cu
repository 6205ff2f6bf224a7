// Updates the moving average of the parameters in GPU memory.
#include "core/graph/ops/training/moving_average.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cuda {
namespace {

__global__ void moving_average(const float* weights, const std::int64_t* step, const float* flags, const float* norm,
                               float* averages, float momentum, bool before, std::int64_t count) {
  if (flags[agree_not_finite] != 0 || !isfinite(*norm)) return;
  const float kept = *step == 0 && !before ? 0.0f : momentum, taken = 1.0f - kept;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    averages[i] = kept * averages[i] + taken * weights[i];
  }
}

}  // namespace

Lowering lower_moving_average(const LowerContext& context) {
  const auto& def = context.op.as<MovingAverage>();
  return own_kernel(
      context, [count = def.count, momentum = def.momentum, before = def.has_initial_values](const Buffers& p) {
        launch(moving_average, blocks_for(count), block_threads, p.stream, p.in<float>(0), p.in<std::int64_t>(1),
               p.in<float>(2), p.in<float>(3), p.out<float>(0), momentum, before, count);
      });
}

}  // namespace trainctl::cuda
