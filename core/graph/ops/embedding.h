// Embeddings: look up the row of a table for each number of a sequence; and the gradient of the table.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y[...] = table[x[...]], in dtype `to`; a number outside [0, rows) results in NaN. Inputs: x int32 [...], table
// float32 [rows, C]. Outputs: y [..., C].
struct Embedding final : OpDef {
  DType to;

  explicit Embedding(DType dtype) : to(dtype) {}
  std::string_view kind() const override { return "embedding"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dtable[r] (+)= the sum of dy[...] over all positions at which x[...] = r, added in the order of x. Inputs: x int32
// [...], dy [..., C]. Outputs: dtable float32 [rows, C].
struct EmbeddingGrad final : OpDef {
  std::int64_t rows = 0;
  bool accumulate = false;

  EmbeddingGrad(std::int64_t r, bool a) : rows(r), accumulate(a) {}
  std::string_view kind() const override { return "embedding_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
