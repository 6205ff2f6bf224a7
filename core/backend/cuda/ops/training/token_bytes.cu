// Counts the bytes of text for which targets stand.
#include "core/graph/ops/metrics/token_bytes.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// Runs on one block.
__global__ void add_bytes(const std::int32_t* targets, std::int64_t count, const float* weights, std::int64_t rows_each,
                          const float* table, std::int64_t tokens, bool add, float* sum) {
  __shared__ double shared[32];
  double own = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const std::int32_t token = targets[i];
    if (token >= 0 && token < tokens) own += static_cast<double>(weights[i / rows_each]) * table[token];
  }
  own = block_sum(own, shared);
  if (threadIdx.x == 0) *sum = static_cast<float>(add ? *sum + own : own);
}

}  // namespace

Lowering lower_token_bytes(const LowerContext& context) {
  const auto& def = context.op.as<TokenBytes>();
  const std::int64_t count = context.input(0).shape.count(), rows_each = count / context.input(1).shape.count();
  const auto tokens = static_cast<std::int64_t>(def.bytes->size());
  return own_kernel(context, [=, add = def.accumulate, table = on_device(*def.bytes)](const Buffers& p) {
    launch(add_bytes, 1, block_threads, p.stream, p.in<std::int32_t>(0), count, p.in<float>(1), rows_each, table.get(),
           tokens, add, p.out<float>(0));
  });
}

}  // namespace trainctl::cuda
