// Writes class numbers as rows with one value for each class. A thread writes one value.
#include "core/graph/ops/one_hot.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

__global__ void write_rows(std::int64_t count, std::int64_t classes, const std::int32_t* numbers, float* rows) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t row = i / classes;
    rows[i] = numbers[row] == i - row * classes ? 1.0f : 0.0f;
  }
}

}  // namespace

Lowering lower_one_hot(const LowerContext& context) {
  const std::int64_t classes = context.op.as<OneHot>().classes, count = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    launch(write_rows, blocks_for(count), block_threads, p.stream, count, classes, p.in<std::int32_t>(0),
           p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
