// Lowers products of two activations to cuBLASLt's batched products.
#include "core/graph/ops/matmul.h"

#include "core/backend/cuda/choice/candidates.h"
#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {

Lowering lower_matmul(const LowerContext& context) {
  const auto& def = context.op.as<Matmul>();
  const MatmulSizes s(def, context.input(0).shape, context.input(1).shape);
  const DType dtype = context.input(0).dtype;
  ProductShape shape{s.rows, s.columns, s.inner, def.transpose_a, def.transpose_b, dtype, dtype};
  shape.batch = s.batch;
  const Product product(context.device, shape, context.choices, context.label());
  Candidate candidate;
  candidate.implementation = product.implementation();
  candidate.inputs = context.logical().inputs;
  candidate.workspace_bytes = product.workspace_bytes();
  candidate.run = [product](const Buffers& p) {
    product.run(p.stream, p.in<void>(0), p.in<void>(1), p.out<void>(0), nullptr, p.workspace<void>());
  };
  return lowering_of(context, candidate);
}

}  // namespace trainctl::cuda
