// Matrix products of two activations: one product for each index of the dimensions before the last two.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y[b] = op(a[b]) op(b[b]) for each index b of the first dimensions, where op transposes the last two dimensions if the
// attribute of the operand says so. Inputs: a [B..., n, k], or [B..., k, n] if transposed; b [B..., k, m], or
// [B..., m, k] if transposed; both have the same dtype, at least three dimensions, and the same first dimensions.
// Outputs: y [B..., n, m], of that dtype. The gradients are products of the same kind.
struct Matmul final : OpDef {
  bool transpose_a = false, transpose_b = false;

  Matmul(bool a, bool b) : transpose_a(a), transpose_b(b) {}
  std::string_view kind() const override { return "matmul"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The sizes of a product of activations with these inputs.
struct MatmulSizes {
  std::int64_t batch, rows, inner, columns;

  MatmulSizes(const Matmul& def, const Shape& a, const Shape& b);
};

}  // namespace trainctl
