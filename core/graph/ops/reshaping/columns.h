// Column ranges: shards of tensors along one dimension, mostly the last one.
#pragma once

#include <cstdint>
#include <string>

#include "core/graph/op.h"

namespace trainctl {

// The position of a rank's shard along a dimension: it begins at element `first` of `of` elements.
struct ColumnRange {
  std::int64_t first = 0;
  std::int64_t of = 0;

  bool operator==(const ColumnRange&) const = default;
};
// Returns text such as "[8..] of 32".
std::string to_string(const ColumnRange& part);

// y = this rank's shard of x along the last dimension. Inputs: x [..., columns], equal on all ranks of the axis.
// Outputs: y [..., C], the columns that ShardPosition gives to this rank. Its gradient is all_gather_columns.
struct TakeColumns final : OpDef {
  MeshAxis axis = MeshAxis::data;
  ShardPosition shard;  // the number of ranks along the axis, and the index of this rank

  TakeColumns(MeshAxis a, ShardPosition s) : axis(a), shard(s) {}
  std::string_view kind() const override { return "take_columns"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
