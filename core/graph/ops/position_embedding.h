// Learned positions: a vector for each position of a sequence; and the gradient of the table of these vectors.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y[n, t] = table[t], or x[n, t] + table[t] if `adds`. With starts, the row of the table is starts[n] + t, or the last
// row if there is none. Inputs: x [N, T, C], of which only the shape is used unless the op adds, table float32
// [positions, C] with positions >= T, starts int32 [N] (optional; the op then has no gradient). Outputs: y, like x. In
// place.
struct PositionEmbedding final : OpDef {
  bool adds = false;  // also set by the fusion pass
  bool starts = false;

  explicit PositionEmbedding(bool add, bool with_starts = false) : adds(add), starts(with_starts) {}
  std::string_view kind() const override { return "position_embedding"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  double reads(std::size_t input, std::span<const TensorType>) const override { return input == 0 && !adds ? 0 : 1; }
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dtable[t] (+)= the sum of dy[n, t] over n; 0 for positions from T on. Inputs: dy [N, T, C]. Outputs: dtable float32
// [positions, C].
struct PositionEmbeddingGrad final : OpDef {
  std::int64_t positions = 0;
  bool accumulate = false;

  PositionEmbeddingGrad(std::int64_t p, bool add) : positions(p), accumulate(add) {}
  std::string_view kind() const override { return "position_embedding_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
