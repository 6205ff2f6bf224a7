// Column ranges: shards of tensors along the last dimension.
#pragma once

#include <cstdint>
#include <string>

#include "core/graph/op.h"

namespace trainctl {

// The position of a rank's shard along the last dimension: it begins at element `first` of `of` elements.
struct ColumnRange {
  std::int64_t first = 0;
  std::int64_t of = 0;

  bool operator==(const ColumnRange&) const = default;
};
// Returns text such as "[8..] of 32".
std::string to_string(const ColumnRange& part);

// y = this rank's shard of x along the last dimension. Inputs: x [..., ranks * C], equal on all ranks of the axis.
// Outputs: y [..., C]. Its gradient is all_gather_columns; the gradient of all_gather_columns is take_columns.
struct TakeColumns final : OpDef {
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;  // number of ranks along the axis
  int index = 0;  // index of this rank along the axis

  TakeColumns(MeshAxis a, int r, int i) : axis(a), ranks(r), index(i) {}
  std::string_view kind() const override { return "take_columns"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
