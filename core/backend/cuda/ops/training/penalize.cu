// Adds the gradients of penalties on parameters.
#include "core/graph/ops/training/penalize.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

__global__ void penalize(Penalty penalty, const float* w, std::int64_t count, const float* samples, const float* scale,
                         float* dw) {
  const float factor = *samples * (scale != nullptr ? *scale : 1.0f);
  const float linear = factor * penalty.l1, square = 2 * factor * penalty.l2;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const float value = w[i];
    dw[i] += square * value + (value > 0 ? linear : value < 0 ? -linear : 0.0f);
  }
}

}  // namespace

Lowering lower_penalize(const LowerContext& context) {
  const Penalty penalty = context.op.as<Penalize>().penalty;
  const std::int64_t count = context.input(0).shape.count();
  const bool scales = context.op.inputs.size() > 2;
  return own_kernel(context, [=](const Buffers& p) {
    launch(penalize, blocks_for(count, 8), block_threads, p.stream, penalty, p.in<float>(0), count, p.in<float>(1),
           scales ? p.in<float>(2) : nullptr, p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
