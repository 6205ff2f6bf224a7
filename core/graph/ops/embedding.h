// Embeddings: look up the row of a table for each number of a sequence; and the gradient of the table.
#pragma once

#include <optional>

#include "core/graph/ops/reshaping/columns.h"

namespace trainctl {

// y[...] = table[x[...]], in dtype `to`; a number outside [0, rows) results in NaN. Inputs: x int32 [...], table
// float32 [rows, C]. Outputs: y [..., C].
// With `range`, the table holds the rows from range.first on of a table with range.of rows. Numbers of rows that other
// ranks hold result in 0, so that the sum of y over the ranks is the look-up in the whole table.
struct Embedding final : OpDef {
  DType to;
  std::optional<ColumnRange> range;

  explicit Embedding(DType dtype, std::optional<ColumnRange> rows = {}) : to(dtype), range(rows) {}
  std::string_view kind() const override { return "embedding"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs, std::span<const std::optional<int>> split,
                                        const ShardPosition& ranks) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  double reads(std::size_t input, std::span<const TensorType> inputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dtable[r] (+)= the sum of dy[...] over all positions at which x[...] = r, added in the order of x. Inputs: x int32
// [...], dy [..., C]. Outputs: dtable float32 [rows, C]. With `range`, dtable[r] is the gradient of row range.first +
// r.
struct EmbeddingGrad final : OpDef {
  std::int64_t rows = 0;
  bool accumulate = false;
  std::optional<ColumnRange> range;

  EmbeddingGrad(std::int64_t r, bool a, std::optional<ColumnRange> held = {}) : rows(r), accumulate(a), range(held) {}
  std::string_view kind() const override { return "embedding_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  double writes(std::span<const TensorType> inputs) const override;
};

}  // namespace trainctl
